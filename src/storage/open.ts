import { dirname } from 'node:path'
import { type Clock, systemClock } from '../base/clock.ts'
import type { ContentStore } from './content.ts'
import { type Disk, DiskSpace } from './disk-space.ts'
import type { RowStore } from './rows.ts'
import { withStoreErrors } from './sqlite/faults.ts'
import { registerOpenStore } from './sqlite/inspect-store.ts'
import { type ConnectionOptions, openConnection } from './sqlite/open.ts'
import { hasPostingWork } from './sqlite/posting-maintenance.ts'
import {
  CallTracker,
  createContentStore,
  createInlineHosts,
  createRowStore,
  createThreadHosts,
} from './sqlite/store.ts'

/** An open store. */
export interface OpenStore {
  readonly rows: RowStore
  readonly content: ContentStore
  /** Checks for free disk space. @throws control_plane_unavailable  the disk is full */
  requireSpace(): Promise<void>
  /** Waits for running work, then closes the files. */
  close(): Promise<void>
}

export interface EmbeddedOptions extends ConnectionOptions {
  /** The database file, or `:memory:`. */
  readonly path: string
  /** True to write and search on separate threads, as a server does. Ignored for a store in memory. */
  readonly threads?: boolean
  readonly clock?: Clock
  readonly disk?: Disk | undefined
}

/**
 * Opens the embedded store: a SQLite file that contains control rows and content. Several processes can use it at
 * the same time.
 *
 * Creates the folder if it is missing, makes the file readable by its owner only, and migrates its schema.
 *
 * @throws control_plane_unavailable  the store is damaged or cannot be opened, or a newer version of Workbase wrote it
 */
export function openEmbeddedStore({
  path,
  threads = false,
  clock = systemClock,
  disk,
  ...options
}: EmbeddedOptions): Promise<OpenStore> {
  return withStoreErrors(async () => {
    const opening = openConnection(path, options)
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
    if (!isThreaded || hasPostingWork(connection)) await hosts.writes.run('maintain', {})
    return {
      rows: createRowStore(connection, hosts, calls),
      content: createContentStore(connection, hosts, calls, clock),
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
