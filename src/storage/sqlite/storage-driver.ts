import type { StorageDriver } from '../storage-driver.ts'
import { isEmptySqliteStore, isNewSqliteStore } from './empty-store.ts'

/**
 * Driver of the embedded store: a SQLite file that contains control rows and content. Modules that most commands do not
 * need are loaded on first use.
 */
export const sqliteDriver: StorageDriver = {
  async open(location, options) {
    const { openSqliteStore } = await import('./open-store.ts')
    return openSqliteStore(location, options)
  },
  async check({ path, dataDir }) {
    if (path === ':memory:') return undefined
    const { checkSqliteStore } = await import('./check.ts')
    return checkSqliteStore(path, dataDir)
  },
  async copy({ path }, copy) {
    const { copySqliteStore } = await import('./copy-store.ts')
    copySqliteStore(path, copy)
  },
  isNew: async ({ path, dataDir }) => isNewSqliteStore(path, dataDir),
  isEmpty: async ({ path }) => isEmptySqliteStore(path),
}
