import { requireWritableAudit } from '../access/audit-trail.ts'
import type { Log } from '../base/log.ts'
import { WbError } from '../contract/errors.ts'
import type { Workspace } from '../contract/workspaces.ts'
import type { AnyTable, RowStore, Write } from '../storage/rows.ts'
import { tables } from '../storage/tables.ts'

/** Removes one kind of thing that a workspace owns; run again after a failure it finishes the rest. */
export type PurgeStep = (workspace: Workspace) => Promise<void>

interface RemoveWorkspaceParts {
  readonly rows: RowStore
  readonly log: Log
  readonly purge: readonly PurgeStep[]
}

/** Each purge but the last was overtaken by somebody who went on making things. */
const purgeAttemptsMax = 8

/** Its knowledge bases go before, with their collections; its trail tells of its end. */
const survivingTables: ReadonlySet<AnyTable> = new Set([tables.knowledgeBases, tables.audit])

/** Tables whose rows go with their workspace: all that are listed by it. */
const ownedTables = (Object.values(tables) as AnyTable[]).filter(
  table => 'byWorkspace' in table.indexes && !survivingTables.has(table),
)

/**
 * Delete a workspace and all that it owns, in units that each leave it whole: the knowledge bases one by one with their
 * collections, then everything else with its own row. What failed half-way can be sent again, and goes on where it
 * stopped.
 *
 * @param record  of the audit trail, kept by the last unit
 * @throws control_plane_unavailable   it could not be recorded; nothing was deleted
 * @throws driver_unavailable, workspace_misconfigured  its collections are out of reach
 * @throws cascade_incomplete          something is left, and with it the workspace
 */
export async function removeWorkspace(
  { rows, log, purge }: RemoveWorkspaceParts,
  workspace: Workspace,
  record?: Write,
): Promise<void> {
  const { workspaceId } = workspace
  if (record) await requireWritableAudit(rows, record)
  try {
    for (let attempt = 0; attempt < purgeAttemptsMax; attempt++) {
      for (const step of purge) await step(workspace)
      const last = await rows.atomic([...lastUnitWrites(workspaceId), ...(record ? [record] : [])])
      const isGone = !last.ok && last.reason === 'absent'
      if (last.ok || isGone) return
    }
    throw new Error(`knowledge bases were made during each of ${purgeAttemptsMax} purges`)
  } catch (error) {
    if (isUnreachableStore(error)) throw error
    log.error({ workspaceId, error }, 'workspace delete stopped half-way')
    throw new WbError(
      'cascade_incomplete',
      `workspace '${workspaceId}' could not be deleted whole${error instanceof WbError ? `: ${error.message}` : ''}`,
      {},
      { cause: error },
    )
  }
}

/** Refused while there is a knowledge base, as its collection would be left behind. */
function lastUnitWrites(workspaceId: string): Write[] {
  const byWorkspace = { index: 'byWorkspace', prefix: [workspaceId] }
  return [
    { op: 'requireNone', table: tables.knowledgeBases, ...byWorkspace },
    ...ownedTables.map((table): Write => ({ op: 'deleteAll', table, ...byWorkspace })),
    { op: 'delete', table: tables.workspaces, key: [workspaceId] },
  ]
}

function isUnreachableStore(error: unknown): boolean {
  return (
    error instanceof WbError &&
    (error.code === 'driver_unavailable' || error.code === 'workspace_misconfigured')
  )
}
