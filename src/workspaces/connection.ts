import { WbError } from '../contract/errors.ts'
import type { ConnectionTest, Workspace } from '../contract/workspaces.ts'
import { type ContentStores, storeOf } from './kinds.ts'

/** A collection that need not be there: the store is asked for it to see whether it answers. */
const asked = 'connection_test'

/**
 * Whether the store of a workspace answers. Never fails: what is wrong is what it tells.
 *
 * @see contract 3.2
 */
export async function testConnection(
  stores: ContentStores,
  { workspaceId, kind, url, credentials }: Workspace,
): Promise<ConnectionTest> {
  try {
    const store = storeOf(stores, { kind, url, credentials })
    await store.collection({ workspaceId, name: asked })
    return { ok: true, kind, details: `the ${store.name} store answers` }
  } catch (error) {
    const details = error instanceof WbError ? error.message : 'the store does not answer'
    return { ok: false, kind, details }
  }
}
