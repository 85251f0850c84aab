import { dirname } from 'node:path'
import { systemClock } from '../../base/clock.ts'
import { DiskSpace } from '../disk-space.ts'
import type { OpenStore, OpenStoreOptions, StoreLocation } from '../storage-driver.ts'
import { withStoreErrors } from './faults.ts'
import { registerOpenStore } from './inspect-store.ts'
import { openConnection } from './open.ts'
import {
  CallTracker,
  createContentStore,
  createInlineHosts,
  createRowStore,
  createThreadHosts,
} from './store.ts'
import { hasMaintenanceWork } from './store-maintenance.ts'

/**
 * Opens a store, see `StorageDriver.open`. Creates the folder if it is missing, and makes the file readable by its owner
 * only. A store in memory does not use separate threads.
 */
export function openSqliteStore(
  { path, dataDir }: StoreLocation,
  { threads = false, isOpenElsewhere, clock = systemClock, disk }: OpenStoreOptions,
): Promise<OpenStore> {
  return withStoreErrors(async () => {
    const opening = openConnection(path, { dataDir, isOpenElsewhere })
    // Register the store before the first `await`, because other calls in this process must not open its files from now
    // on.
    const unregister = registerOpenStore(path)
    const connection = await opening.catch(error => {
      unregister()
      throw error
    })
    const isThreaded = threads && path !== ':memory:'
    if (isThreaded) connection.makeReadOnly()
    const storeHosts = isThreaded ? createThreadHosts(path) : createInlineHosts(connection)
    const space = new DiskSpace(dirname(path), disk)
    const hosts = { ...storeHosts, writes: space.observe(storeHosts.writes) }
    const calls = new CallTracker()
    // A writer thread starts at its first call, which would be too late for work that an earlier process left.
    if (!isThreaded || hasMaintenanceWork(connection)) await hosts.writes.run('maintain', {})
    return {
      rows: createRowStore(connection, hosts, calls),
      content: createContentStore(connection, hosts, calls, clock),
      threadLocation: path === ':memory:' ? undefined : { driver: 'sqlite', path },
      requireSpace: async () => {
        if (path !== ':memory:') await space.require()
      },
      async close() {
        await calls.close()
        await hosts.writes.close()
        await hosts.reads.close()
        if (!connection.database.open) return
        connection.close()
        unregister()
      },
    }
  })
}
