import { WbError } from '../contract/errors.ts'
import type { ConnectionTest, Workspace } from '../contract/workspaces.ts'
import { type ContentStores, requireStore } from './content-stores.ts'

/** Name of the collection that is opened as a test. It does not have to exist. */
const probedCollection = 'connection_test'

/**
 * Tests the connection to the store of a workspace. Never throws: failures are returned.
 *
 * @see docs/connecting.md#test-the-store-of-a-workspace
 */
export async function testConnection(stores: ContentStores, workspace: Workspace): Promise<ConnectionTest> {
  const { kind } = workspace
  try {
    const store = requireStore(stores, workspace)
    await store.collection({ workspaceId: workspace.workspaceId, name: probedCollection })
    return { ok: true, kind, details: `the ${store.name} store responds` }
  } catch (error) {
    const details = error instanceof WbError ? error.message : 'the store does not respond'
    return { ok: false, kind, details }
  }
}
