import { dirname } from 'node:path'
import { type Clock, systemClock } from '../base/clock.ts'
import type { ContentStore } from './content.ts'
import { type Disk, DiskSpace } from './disk-space.ts'
import type { RowStore } from './rows.ts'
import { withStoreErrors } from './sqlite/faults.ts'
import { registerOpenStore } from './sqlite/inspect-store.ts'
import { type ConnectionOptions, openConnection } from './sqlite/open.ts'
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
  /** @throws control_plane_unavailable  the disk is full */
  requireSpace(): Promise<void>
  /** Waits for running work, then closes the files. */
  close(): Promise<void>
}

export interface EmbeddedOptions extends ConnectionOptions {
  /** The database file, or `:memory:`. */
  readonly path: string
  /** True to write and search on separate threads, as in a server. A store in memory ignores it. */
  readonly threads?: boolean
  readonly clock?: Clock
  readonly disk?: Disk | undefined
}

/**
 * Opens the embedded store: one SQLite file for control rows and content. Several processes can use it at
 * once.
 *
 * Creates the folder if it is missing, makes the file readable by its owner only, and migrates its schema.
 *
 * @throws control_plane_unavailable  the store cannot be opened, is damaged, or is of a newer version
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
    // Registered before the first `await`, because other calls in this process must no longer read the files.
    const noteClosed = registerOpenStore(path)
    const connection = await opening.catch(error => {
      noteClosed()
      throw error
    })
    const isThreaded = threads && path !== ':memory:'
    if (isThreaded) connection.makeReadOnly()
    const own = isThreaded ? createThreadHosts(path) : createInlineHosts(connection)
    const space = new DiskSpace(dirname(path), disk)
    const hosts = { ...own, writes: space.observed(own.writes) }
    const gate = new CallTracker()
    return {
      rows: createRowStore(connection, hosts, gate),
      content: createContentStore(connection, hosts, gate, clock),
      requireSpace: async () => {
        if (path !== ':memory:') await space.require()
      },
      async close() {
        await gate.close()
        await hosts.writes.close()
        await hosts.reads.close()
        if (!connection.database.open) return
        connection.close()
        noteClosed()
      },
    }
  })
}
