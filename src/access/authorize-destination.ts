import { needs } from '../contract/access.ts'
import type { Workspace } from '../contract/workspaces.ts'
import { type RowStore, revisionOf, type Write } from '../storage/rows.ts'
import { tables } from '../storage/tables.ts'
import { authorize } from './authorize.ts'
import type { Caller } from './caller.ts'
import { workspaceNotFound } from './require-workspace.ts'

/**
 * Checks that a caller may decide where content of a workspace is sent. With row-level access, this needs the scope
 * `manage:access`, because the receiver also gets documents that are hidden from the caller.
 *
 * @throws forbidden  row-level access is on, and the caller lacks the scope
 * @see docs/access.md#where-documents-are-sent
 */
export function authorizeDestination(
  { workspaceId, rlacEnabled }: Pick<Workspace, 'workspaceId' | 'rlacEnabled'>,
  caller: Pick<Caller, 'auth'>,
): void {
  if (rlacEnabled) authorize({ rule: needs('manage:access'), workspaceId }, caller)
}

/**
 * Like {@link authorizeDestination}, but reads the workspace. Returns a write for the transaction that stores the destination.
 * The write fails if the workspace was changed or deleted in the meantime, for example if row-level access was turned on.
 * Authorize the caller again then.
 *
 * @throws workspace_not_found, forbidden
 */
export async function authorizeStoredDestination(
  rows: RowStore,
  workspaceId: string,
  caller: Pick<Caller, 'auth'>,
): Promise<Write> {
  const stored = await rows.get(tables.workspaces, [workspaceId])
  if (!stored) throw workspaceNotFound(workspaceId)
  authorizeDestination(stored.row, caller)
  return { op: 'require', table: tables.workspaces, key: [workspaceId], ...revisionOf(stored) }
}
