import { WbError } from '../contract/errors.ts'
import type { ConnectionTest, Workspace } from '../contract/workspaces.ts'
import { type ContentStores, storeOf } from './kinds.ts'

/** A collection that need not be there: the store is asked for it to see whether it answers. */
const asked = 'connection_test'

/**
 * Whether the store of a workspace answers. Never fails: what is wrong is what it tells.
 *
 * @see docs/connecting.md#whether-the-store-answers
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
