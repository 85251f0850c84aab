import { WbError } from '../contract/errors.ts'
import type { ConnectionTest, Workspace } from '../contract/workspaces.ts'
import { type ContentStores, storeOf } from './kinds.ts'

/** Name of a collection to read as a test; it does not have to exist. */
const asked = 'connection_test'

/**
 * Tests the connection to the store of a workspace. Never throws: failures are returned.
 *
 * @see docs/connecting.md#test-the-store-of-a-workspace
 */
export async function testConnection(stores: ContentStores, workspace: Workspace): Promise<ConnectionTest> {
  const { kind } = workspace
  try {
    const store = storeOf(stores, workspace)
    await store.collection({ workspaceId: workspace.workspaceId, name: asked })
    return { ok: true, kind, details: `the ${store.name} store answers` }
  } catch (error) {
    const details = error instanceof WbError ? error.message : 'the store does not answer'
    return { ok: false, kind, details }
  }
}
