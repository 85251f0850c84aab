import { WbError } from '../contract/errors.ts'
import type { Workspace, WorkspaceKind } from '../contract/workspaces.ts'
import type { ContentStore } from '../storage/content.ts'

/** The content store of each workspace kind that has a driver. */
export type ContentStores = Partial<Record<WorkspaceKind, ContentStore>>

/** @throws driver_unavailable  this runtime has no driver for the workspace's kind */
export function storeOf(stores: ContentStores, workspace: Pick<Workspace, 'kind'>): ContentStore {
  const store = stores[workspace.kind]
  if (store) return store
  throw new WbError('driver_unavailable', `no driver for workspaces of kind '${workspace.kind}'`)
}
