import type { FileLocks } from './file-locks.ts'
import { sqliteFileLocks } from './sqlite/file-locks.ts'
import { sqliteDriver } from './sqlite/storage-driver.ts'
import type {
  OpenStore,
  OpenStoreOptions,
  StorageDriver,
  StoreLocation,
  StoreReport,
} from './storage-driver.ts'

export { openMemoryContent } from './memory/content.ts'

/* The registry of storage drivers. Other modules import a driver only through this file. */

const drivers: Readonly<Record<StoreLocation['driver'], StorageDriver>> = { sqlite: sqliteDriver }

/** Locks between the processes of this machine, whichever driver its stores use. */
export const fileLocks: FileLocks = sqliteFileLocks

/** Opens a store with the driver of its location, see {@link StorageDriver.open}. */
export function openStore(location: StoreLocation, options: OpenStoreOptions = {}): Promise<OpenStore> {
  return drivers[location.driver].open(location, options)
}

/** Opens an embedded store by its path, see {@link openStore}. */
export function openEmbeddedStore({
  path,
  dataDir,
  ...options
}: OpenStoreOptions & Omit<StoreLocation, 'driver'>): Promise<OpenStore> {
  return openStore({ driver: 'sqlite', path, dataDir }, options)
}

/** Checks a store with the driver of its location, see {@link StorageDriver.check}. */
export function checkStore(location: StoreLocation): Promise<StoreReport | undefined> {
  return drivers[location.driver].check(location)
}

/** Copies a store to a new file, see {@link StorageDriver.copy}. */
export function copyStore(location: StoreLocation, path: string): Promise<void> {
  return drivers[location.driver].copy(location, path)
}

/** Moves a copy of a store to its location, see {@link StorageDriver.install}. */
export function installStore(path: string, location: StoreLocation): Promise<void> {
  return drivers[location.driver].install(path, location)
}

/** Returns true if another process has a store open, see {@link StorageDriver.isInUse}. */
export function isStoreInUse(location: StoreLocation): Promise<boolean> {
  return drivers[location.driver].isInUse(location)
}

/** Returns true if there is no store at a location, and no evidence of an earlier store. */
export function isNewStore(location: StoreLocation): Promise<boolean> {
  return drivers[location.driver].isNew(location)
}

/** Returns true if there is no store, or if it has no data, see {@link StorageDriver.isEmpty}. */
export function isEmptyStore(location: StoreLocation): Promise<boolean> {
  return drivers[location.driver].isEmpty(location)
}
