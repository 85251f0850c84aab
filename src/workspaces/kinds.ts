import { WbError } from '../contract/errors.ts'
import type { Workspace, WorkspaceKind } from '../contract/workspaces.ts'
import type { ContentStore } from '../storage/content.ts'

/** The content store of each workspace kind that has a driver. */
export type ContentStores = Partial<Record<WorkspaceKind, ContentStore>>

type Bound = Pick<Workspace, 'kind' | 'url' | 'credentials'>

/** Kinds whose content lies in a database that the workspace names. */
const remoteKinds: ReadonlySet<WorkspaceKind> = new Set(['astra', 'hcd'])

/**
 * The store that holds the content of a workspace.
 *
 * @throws workspace_misconfigured  it does not say where its database is, or by which token it opens
 * @throws driver_unavailable       this runtime has no driver for its kind
 */
export function storeOf(stores: ContentStores, workspace: Bound): ContentStore {
  requireBinding(workspace)
  const store = stores[workspace.kind]
  if (store) return store
  throw new WbError('driver_unavailable', `no driver for workspaces of kind '${workspace.kind}'`)
}

function requireBinding({ kind, url, credentials }: Bound): void {
  if (!remoteKinds.has(kind)) return
  const lacks = url === null ? 'url' : credentials.token === undefined ? 'credentials.token' : undefined
  if (lacks) throw new WbError('workspace_misconfigured', `a workspace of kind '${kind}' needs ${lacks}`)
}
