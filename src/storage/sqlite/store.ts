import { join } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { packageRoot } from '../../base/package.ts'
import { inlineHost, threadHost } from '../../base/threads.ts'
import { WbError } from '../../contract/errors.ts'
import type { ContentStore, FittedSpaces, LexicalSearch, RecordListing } from '../content.ts'
import type { RowFeed, RowStore } from '../rows.ts'
import { describeCollection, listCollections } from './collections.ts'
import { compactCollection } from './compact-collection.ts'
import type { SqliteConnection } from './connection.ts'
import { convertStoreError, withStoreErrors } from './faults.ts'
import { createReadOperations, createWriter, type StoreHosts } from './operations.ts'
import { RecordReader } from './record-reader.ts'
import { SqliteRows } from './rows.ts'
import { SpaceReads } from './vector-spaces.ts'
import type { WorkerData } from './worker.ts'

/** Maximum number of records to read on the calling thread. Messages to another thread take longer than reading them. */
const INLINE_RECORDS_MAX = 20

/** Creates hosts that run all operations on the calling thread, with the given connection. */
export function createInlineHosts(connection: SqliteConnection): StoreHosts {
  const { operations, close } = createWriter(connection)
  return {
    reads: inlineHost(createReadOperations(connection)),
    writes: inlineHost(operations, close),
  }
}

/** Creates hosts that run reads on one thread and writes on another. Each thread starts at its first call. */
export function createThreadHosts(path: string): StoreHosts {
  const entry = join(packageRoot(), 'dist', 'src', 'storage', 'sqlite', 'worker.js')
  const dataFor = (role: WorkerData['role']) => ({ path, role }) satisfies WorkerData
  return { reads: threadHost(entry, dataFor('reader')), writes: threadHost(entry, dataFor('writer')) }
}

/** Tracks running calls, so that a store is closed only after all of them have ended. */
export class CallTracker {
  readonly #running = new Set<Promise<unknown>>()
  #isClosed = false

  /** @throws control_plane_unavailable  the store is closed */
  async run<T>(work: () => T | Promise<T>): Promise<T> {
    if (this.#isClosed) throw new WbError('control_plane_unavailable', 'the store is closed')
    const running = withStoreErrors(work)
    this.#running.add(running)
    try {
      return await running
    } finally {
      this.#running.delete(running)
    }
  }

  /**
   * Runs synchronous work, which does not have to be tracked.
   *
   * @throws control_plane_unavailable  the store is closed, or cannot be read
   */
  runSync<T>(work: () => T): T {
    if (this.#isClosed) throw new WbError('control_plane_unavailable', 'the store is closed')
    try {
      return work()
    } catch (error) {
      throw convertStoreError(error)
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.allSettled(this.#running)
  }
}

/** Creates the row store of an embedded store. Reads run on this thread, and writes on the host for writes. */
export function createRowStore(
  connection: SqliteConnection,
  { writes }: StoreHosts,
  calls: CallTracker,
): RowStore {
  const rows = new SqliteRows(connection)
  return {
    get: async (table, key, tags) => calls.runSync(() => rows.get(table, key, tags)),
    list: async (table, query) => calls.runSync(() => rows.list(table, query)),
    count: async (table, index, prefix) => calls.runSync(() => rows.count(table, index, prefix)),
    measure: async (table, index, prefix) => calls.runSync(() => rows.measure(table, index, prefix)),
    atomic: rowWrites => calls.run(() => writes.run('write', { changes: [], rows: rowWrites })),
    feed: createRowFeed(rows, calls),
  }
}

/**
 * Creates the row feed of an embedded store. A position is an `ordinal`: the write lock is held from its assignment to
 * the commit, and a number is never used again.
 */
function createRowFeed(rows: SqliteRows, calls: CallTracker): RowFeed {
  return {
    start: () => '0',
    end: async table => calls.runSync(() => String(rows.lastOrdinal(table))),
    positionOf: async (table, key) =>
      calls.runSync(() => {
        const ordinal = rows.ordinalOf(table, key)
        return ordinal === undefined ? undefined : String(ordinal)
      }),
    read: async (table, { index, prefix, after, limit }) =>
      calls.runSync(() => {
        const slice = rows.list(table, { index, prefix, after: [Number(after)], limit })
        return { rows: slice, position: String(slice.at(-1)?.ordinal ?? after) }
      }),
  }
}

/** Creates the content store of an embedded store. */
export function createContentStore(
  connection: SqliteConnection,
  hosts: StoreHosts,
  calls: CallTracker,
  clock: Clock,
): ContentStore {
  const { reads, writes } = hosts
  const inlineReads = new RecordReader(connection)
  const spaces = createSpaces(connection, hosts, calls, clock)
  return {
    name: 'embedded',
    collection: async key => calls.runSync(() => describeCollection(connection, key)),
    collections: async workspaceId => calls.runSync(() => listCollections(connection, workspaceId)),
    stats: key =>
      calls.run(async () => {
        const { index, ...stats } = await reads.run('stats', { key })
        if (!index) return { ...stats, index }
        return { ...stats, index: { ...index, failure: await writes.run('maintenanceFailure', {}) } }
      }),
    storedBytes: keys => calls.run(() => reads.run('storedBytes', { keys })),
    compact: (key, options) => calls.run(() => compactCollection(hosts, key, options)),
    write: (changes, rows) => calls.run(() => writes.run('write', { changes, rows })),
    nearest: (key, query) => calls.run(() => reads.run('nearest', { key, query })),
    read: async (key, records, options) =>
      records.length <= INLINE_RECORDS_MAX
        ? calls.runSync(() => inlineReads.read(key, records, options))
        : calls.run(() => reads.run('read', { key, records, options })),
    owners: (key, ids, visibility) => calls.run(() => reads.run('owners', { key, ids, visibility })),
    lexical: {
      search: (key, query) => calls.run(() => reads.run('lexical', { key, query })),
      explain: (key, query) => calls.run(() => reads.run('explain', { key, query })),
      countOccurrences: (key, query) => calls.run(() => reads.run('countOccurrences', { key, query })),
    } satisfies LexicalSearch,
    listing: {
      listByDocument: (key, query) => calls.run(() => reads.run('listByDocument', { key, query })),
      numbersByDocument: (key, query) => calls.run(() => reads.run('numbersByDocument', { key, query })),
      listDirect: (key, query) => calls.run(() => reads.run('listDirect', { key, query })),
    } satisfies RecordListing,
    spaces,
    fitted: spaces,
  }
}

function createSpaces(
  connection: SqliteConnection,
  { reads, writes }: StoreHosts,
  calls: CallTracker,
  clock: Clock,
): FittedSpaces {
  const inlineReads = new SpaceReads(connection)
  return {
    model: key => calls.run(() => reads.run('model', { key })),
    passages: (key, query) => calls.run(() => reads.run('passages', { key, query })),
    invalidate: key => calls.run(() => writes.run('invalidate', { key })),
    unstaged: (key, generation, limit) => calls.run(() => reads.run('unstaged', { key, generation, limit })),
    fittedCollections: () => calls.run(() => inlineReads.fittedCollections()),
    fitCounts: (key, visibility) =>
      calls.run(() =>
        visibility.filter
          ? reads.run('fitCounts', { key, visibility })
          : inlineReads.fitCounts(key, () => undefined),
      ),
    lease: (key, owner, durationMs) =>
      calls.run(() => writes.run('lease', { key, owner, now: clock.now(), until: clock.now() + durationMs })),
    renew: (key, owner, durationMs) =>
      calls.run(() => writes.run('renew', { key, owner, until: clock.now() + durationMs })),
    release: (key, owner) => calls.run(() => writes.run('release', { key, owner })),
    stage: (key, lease, vectors) => calls.run(() => writes.run('stage', { key, lease, vectors })),
    swap: (key, lease, fitted) => calls.run(() => writes.run('swap', { key, lease, fitted })),
    unfilled: space => calls.run(() => inlineReads.unfilled(space)),
  }
}
