import { join } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { packageRoot } from '../../base/package.ts'
import { inlineHost, type OperationHost, threadHost } from '../../base/threads.ts'
import { WbError } from '../../contract/errors.ts'
import type { ContentStore, FittedSpaces, LexicalSearch, RecordListing } from '../content.ts'
import type { RowStore } from '../rows.ts'
import { describeCollection, listCollections } from './collections.ts'
import type { SqliteConnection } from './connection.ts'
import { convertStoreError, withStoreErrors } from './faults.ts'
import { FittedReads } from './fitted-spaces.ts'
import {
  createReadOperations,
  createWriteOperations,
  type ReadOperations,
  type WriteOperations,
} from './operations.ts'
import { SqliteRows } from './rows.ts'
import type { WorkerData } from './worker.ts'

/** Hosts that run the operations of a store. */
export interface StoreHosts {
  readonly reads: OperationHost<ReadOperations>
  readonly writes: OperationHost<WriteOperations>
}

/** Runs all operations on the calling thread, over one connection. */
export function createInlineHosts(connection: SqliteConnection): StoreHosts {
  return {
    reads: inlineHost(createReadOperations(connection)),
    writes: inlineHost(createWriteOperations(connection)),
  }
}

/** Runs operations on one thread that writes and one that reads. Each starts with its first call. */
export function createThreadHosts(path: string): StoreHosts {
  const entry = join(packageRoot(), 'dist', 'src', 'storage', 'sqlite', 'worker.js')
  const start = (role: WorkerData['role']) => ({ path, role }) satisfies WorkerData
  return { reads: threadHost(entry, start('reader')), writes: threadHost(entry, start('writer')) }
}

/** Tracks running calls, so that a store is closed only after the last of them. */
export class CallTracker {
  readonly #running = new Set<Promise<unknown>>()
  #isClosed = false

  /** @throws control_plane_unavailable  the store is closed */
  async pass<T>(work: () => T | Promise<T>): Promise<T> {
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
   * Runs work that ends synchronously, and so needs no tracking.
   *
   * @throws control_plane_unavailable  the store is closed, or cannot be read
   */
  read<T>(work: () => T): T {
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

/** Creates the control rows of an embedded store. Reads run on this thread, writes on the host for writes. */
export function createRowStore(
  connection: SqliteConnection,
  { writes }: StoreHosts,
  gate: CallTracker,
): RowStore {
  const rows = new SqliteRows(connection)
  return {
    get: async (table, key) => gate.read(() => rows.get(table, key)),
    list: async (table, query) => gate.read(() => rows.list(table, query)),
    count: async (table, index, prefix) => gate.read(() => rows.count(table, index, prefix)),
    atomic: units => gate.pass(() => writes.run('write', { changes: [], rows: units })),
  }
}

/** Content of an embedded store. */
export function createContentStore(
  connection: SqliteConnection,
  hosts: StoreHosts,
  gate: CallTracker,
  clock: Clock,
): ContentStore {
  const { reads, writes } = hosts
  return {
    name: 'embedded',
    collection: async key => gate.read(() => describeCollection(connection, key)),
    collections: async workspaceId => gate.read(() => listCollections(connection, workspaceId)),
    write: (changes, rows) => gate.pass(() => writes.run('write', { changes, rows })),
    nearest: (key, query) => gate.pass(() => reads.run('nearest', { key, query })),
    read: (key, records, options) => gate.pass(() => reads.run('read', { key, records, options })),
    owners: (key, ids) => gate.pass(() => reads.run('owners', { key, ids })),
    lexical: {
      search: (key, query) => gate.pass(() => reads.run('lexical', { key, query })),
      occurrences: (key, query) => gate.pass(() => reads.run('occurrences', { key, query })),
    } satisfies LexicalSearch,
    listing: {
      ofDocument: (key, query) => gate.pass(() => reads.run('ofDocument', { key, query })),
    } satisfies RecordListing,
    fitted: createFittedSpaces(connection, hosts, gate, clock),
  }
}

function createFittedSpaces(
  connection: SqliteConnection,
  { reads, writes }: StoreHosts,
  gate: CallTracker,
  clock: Clock,
): FittedSpaces {
  const here = new FittedReads(connection)
  return {
    model: key => gate.pass(() => reads.run('model', { key })),
    passages: (key, after, limit) => gate.pass(() => reads.run('passages', { key, after, limit })),
    unstaged: (key, generation, limit) => gate.pass(() => reads.run('unstaged', { key, generation, limit })),
    unfitted: () => gate.pass(() => here.unfitted()),
    lease: (key, owner, durationMs) =>
      gate.pass(() => writes.run('lease', { key, owner, now: clock.now(), until: clock.now() + durationMs })),
    release: (key, owner) => gate.pass(() => writes.run('release', { key, owner })),
    stage: (key, fit, vectors) => gate.pass(() => writes.run('stage', { key, fit, vectors })),
    swap: (key, fit, fitted) => gate.pass(() => writes.run('swap', { key, fit, fitted })),
  }
}
