import { type Clock, systemClock } from '../base/clock.ts'
import type { ContentStore } from './content.ts'
import type { RowStore } from './rows.ts'
import { guard } from './sqlite/faults.ts'
import { openConnection } from './sqlite/open.ts'
import { contentStore, Gate, inlineHosts, rowStore, threadedHosts } from './sqlite/store.ts'

/** An open store. */
export interface OpenStore {
  readonly rows: RowStore
  readonly content: ContentStore
  /** Finish what is under way, then let go of the files. */
  close(): Promise<void>
}

export interface EmbeddedOptions {
  /** The database file, or `:memory:`. */
  readonly path: string
  /** Whether writing and heavy reading have threads of their own, as in a server; a store in memory has none. */
  readonly threads?: boolean
  readonly clock?: Clock
}

/**
 * The embedded store: one SQLite file for control rows and content, safe for several processes.
 *
 * Its folder is made when missing, the file is readable by its owner only, its schema is brought up to date.
 *
 * @throws control_plane_unavailable  it cannot be opened, is damaged, or a newer version of Workbase wrote it
 */
export function openEmbedded({
  path,
  threads = false,
  clock = systemClock,
}: EmbeddedOptions): Promise<OpenStore> {
  return guard(async () => {
    const connection = await openConnection(path)
    const isThreaded = threads && path !== ':memory:'
    if (isThreaded) connection.makeReadOnly()
    const hosts = isThreaded ? threadedHosts(path) : inlineHosts(connection)
    const gate = new Gate()
    return {
      rows: rowStore(connection, hosts, gate),
      content: contentStore(connection, hosts, gate, clock),
      async close() {
        await gate.close()
        await hosts.writes.close()
        await hosts.reads.close()
        if (connection.database.open) connection.close()
      },
    }
  })
}
