import { requireWritableAudit } from '../access/audit-trail.ts'
import { versionsStartRemoval } from '../access/versions/version-removal.ts'
import type { Log } from '../base/log.ts'
import { WbError } from '../contract/errors.ts'
import type { Workspace } from '../contract/workspaces.ts'
import type { AnyTable, RowStore, Write } from '../storage/rows.ts'
import { tables } from '../storage/tables.ts'

/**
 * Deletes one kind of content of a workspace. Can be run again after a failure.
 *
 * @param authorize  called before each part that takes long; throws if the caller has lost its access
 */
export type PurgeStep = (workspace: Workspace, authorize: () => Promise<void>) => Promise<void>

interface RemoveWorkspaceDependencies {
  readonly rows: RowStore
  readonly log: Log
  readonly purge: readonly PurgeStep[]
}

/** Codes of errors that explain by themselves why the workspace remains. */
const finalCodes: ReadonlySet<string> = new Set([
  'driver_unavailable',
  'workspace_misconfigured',
  'unauthorized',
  'forbidden',
])

/** Maximum number of purges. If a knowledge base is created during a purge, the purge is repeated. */
const purgeAttemptsMax = 8

/**
 * Tables whose rows are not deleted in the last transaction: knowledge bases are purged before it, with their
 * collections, and the audit trail is kept.
 */
const excludedTables: ReadonlySet<AnyTable> = new Set([tables.knowledgeBases, tables.audit])

/** Tables whose rows are deleted with their workspace. */
const ownedTables = (Object.values(tables) as AnyTable[]).filter(
  table => 'byWorkspace' in table.indexes && !excludedTables.has(table),
)

/**
 * Deletes a workspace and its content: first each knowledge base with its collection, then everything else in one
 * transaction. A failed deletion can be repeated, and continues where it stopped.
 *
 * @param removal.record     audit record, stored by the last transaction
 * @param removal.authorize  throws if the caller has lost its access; the workspace and the rest of its content then remain
 * @throws control_plane_unavailable   the audit record cannot be stored; nothing was deleted
 * @throws driver_unavailable, workspace_misconfigured  its store cannot be reached
 * @throws unauthorized, forbidden     the caller lost its access in the meantime
 * @throws cascade_incomplete          some content could not be deleted, so the workspace remains
 */
export async function removeWorkspace(
  { rows, log, purge }: RemoveWorkspaceDependencies,
  workspace: Workspace,
  {
    record,
    authorize = async () => {},
  }: { record?: Write | undefined; authorize?: (() => Promise<void>) | undefined } = {},
): Promise<void> {
  const { workspaceId } = workspace
  if (record) await requireWritableAudit(rows, record)
  try {
    for (let attempt = 0; attempt < purgeAttemptsMax; attempt++) {
      for (const step of purge) await step(workspace, authorize)
      await authorize()
      const last = await rows.atomic([
        ...lastTransactionWrites(workspaceId),
        ...(await versionsStartRemoval(rows, workspaceId)),
        ...(record ? [record] : []),
      ])
      const isAlreadyDeleted = !last.ok && last.reason === 'absent'
      if (last.ok || isAlreadyDeleted) return
    }
    throw new Error(`knowledge bases were created during each of ${purgeAttemptsMax} purges`)
  } catch (error) {
    if (error instanceof WbError && finalCodes.has(error.code)) throw error
    log.error({ workspaceId, error }, 'a workspace was deleted only partially')
    throw new WbError(
      'cascade_incomplete',
      `workspace '${workspaceId}' could not be deleted completely${error instanceof WbError ? `: ${error.message}` : ''}`,
      {},
      { cause: error },
    )
  }
}

/**
 * Returns the writes of the last transaction. The transaction fails if there is still a knowledge base, because its
 * collection would not be deleted.
 */
function lastTransactionWrites(workspaceId: string): Write[] {
  const byWorkspace = { index: 'byWorkspace', prefix: [workspaceId] }
  return [
    { op: 'requireNone', table: tables.knowledgeBases, ...byWorkspace },
    ...ownedTables.map((table): Write => ({ op: 'deleteAll', table, ...byWorkspace })),
    { op: 'delete', table: tables.workspaces, key: [workspaceId] },
  ]
}
