import { authorize } from '../access/authorize.ts'
import type { Caller } from '../access/caller.ts'
import { requireWorkspace } from '../access/require-workspace.ts'
import { needs } from '../contract/access.ts'
import type { RowStore } from '../storage/rows.ts'

/**
 * Checks that a caller may decide where the content of a workspace is sent. With row-level access, this needs `manage:access`:
 * a service or an MCP server receives documents of everyone whose searches and agents use it.
 *
 * @throws workspace_not_found, forbidden
 * @see docs/access.md#row-level-access
 */
export async function authorizeDestination(
  rows: RowStore,
  workspaceId: string,
  caller: Pick<Caller, 'auth'>,
): Promise<void> {
  const { rlacEnabled } = await requireWorkspace(rows, workspaceId)
  if (rlacEnabled) authorize({ rule: needs('manage:access'), workspaceId }, caller)
}
