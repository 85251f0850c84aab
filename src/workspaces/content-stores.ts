import { WbError } from '../contract/errors.ts'
import type { Workspace, WorkspaceKind } from '../contract/workspaces.ts'
import type { ContentStore } from '../storage/content.ts'

/** The content store of each workspace kind that has a driver. */
export type ContentStores = Partial<Record<WorkspaceKind, ContentStore>>

type StoreFields = Pick<Workspace, 'kind' | 'url' | 'keyspace' | 'credentials'>

/** Workspace kinds whose content is in a database that the workspace specifies. */
const remoteKinds: ReadonlySet<WorkspaceKind> = new Set(['astra', 'hcd'])

/**
 * Returns the content store of a workspace.
 *
 * @throws workspace_misconfigured  the URL, the keyspace or the token of its database is missing
 * @throws driver_unavailable       this runtime has no driver for its kind
 */
export function requireStore(stores: ContentStores, workspace: StoreFields): ContentStore {
  requireStoreFields(workspace)
  const store = stores[workspace.kind]
  if (store) return store
  throw new WbError('driver_unavailable', `no driver for workspaces of kind '${workspace.kind}'`)
}

function requireStoreFields({ kind, url, keyspace, credentials }: StoreFields): void {
  if (!remoteKinds.has(kind)) return
  const [missingField] = Object.entries({ url, keyspace, 'credentials.token': credentials.token })
    .filter(([, value]) => !value)
    .map(([field]) => field)
  if (missingField)
    throw new WbError('workspace_misconfigured', `a workspace of kind '${kind}' needs ${missingField}`)
}
