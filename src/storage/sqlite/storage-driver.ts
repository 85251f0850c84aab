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
  async copy({ path, dataDir }, copy) {
    const { copyIntactStore } = await import('./copy-store.ts')
    await copyIntactStore(path, dataDir, copy)
  },
  async install(copy, location) {
    const { installSqliteStore } = await import('./install-store.ts')
    installSqliteStore(copy, location)
  },
  async isInUse({ path }) {
    const { isSqliteStoreInUse } = await import('./install-store.ts')
    return isSqliteStoreInUse(path)
  },
  isNew: async ({ path, dataDir }) => isNewSqliteStore(path, dataDir),
  isEmpty: async ({ path }) => isEmptySqliteStore(path),
}
