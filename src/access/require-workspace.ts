import { WbError } from '../contract/errors.ts'
import type { Workspace } from '../contract/workspaces.ts'
import type { RowStore } from '../storage/rows.ts'
import { tables } from '../storage/tables.ts'

/** @throws workspace_not_found  when there is no workspace with this ID */
export async function requireWorkspace(rows: RowStore, workspaceId: string): Promise<Workspace> {
  const stored = await rows.get(tables.workspaces, [workspaceId])
  if (!stored) throw workspaceNotFound(workspaceId)
  return stored.row
}

/** Returns the error for a workspace that does not exist or was deleted. */
export function workspaceNotFound(workspaceId: string): WbError {
  return new WbError('workspace_not_found', `workspace '${workspaceId}' not found`)
}
