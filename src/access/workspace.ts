import { WbError } from '../contract/errors.ts'
import type { Workspace } from '../contract/workspaces.ts'
import type { RowStore } from '../storage/rows.ts'
import { tables } from '../storage/tables.ts'

/** @throws workspace_not_found  there is none of this id */
export async function requireWorkspace(rows: RowStore, workspaceId: string): Promise<Workspace> {
  const stored = await rows.get(tables.workspaces, [workspaceId])
  if (!stored) throw workspaceNotFound(workspaceId)
  return stored.row
}

/** What is said of a workspace that a path names and that is not there, or is no more. */
export function workspaceNotFound(workspaceId: string): WbError {
  return new WbError('workspace_not_found', `workspace '${workspaceId}' not found`)
}
