import { join } from 'node:path'
import type { Clock } from '../../base/clock.ts'
import { packageRoot } from '../../base/package.ts'
import { inlineHost, type OperationHost, threadHost } from '../../base/threads.ts'
import { WbError } from '../../contract/errors.ts'
import type { ContentStore, FittedSpaces, LexicalSearch, RecordListing } from '../content.ts'
import type { RowStore } from '../rows.ts'
import { describeCollection, listCollections } from './collections.ts'
import type { Connection } from './connection.ts'
import { asFault, guard } from './faults.ts'
import { FittedReads } from './fitted.ts'
import { type ReadOps, readOps, type WriteOps, writeOps } from './ops.ts'
import { Rows } from './rows.ts'
import type { WorkerData } from './worker.ts'

/** Hosts that run the operations of a store. */
export interface Hosts {
  readonly reads: OperationHost<ReadOps>
  readonly writes: OperationHost<WriteOps>
}

/** Runs all operations on the calling thread, over one connection. */
export function inlineHosts(connection: Connection): Hosts {
  return { reads: inlineHost(readOps(connection)), writes: inlineHost(writeOps(connection)) }
}

/** Runs operations on one thread that writes and one that reads. Each starts with its first call. */
export function threadedHosts(path: string): Hosts {
  const entry = join(packageRoot(), 'dist', 'src', 'storage', 'sqlite', 'worker.js')
  const start = (role: WorkerData['role']) => ({ path, role }) satisfies WorkerData
  return { reads: threadHost(entry, start('reader')), writes: threadHost(entry, start('writer')) }
}

/** Tracks running calls, so that a store is closed only after the last of them. */
export class Gate {
  readonly #running = new Set<Promise<unknown>>()
  #isClosed = false

  /** @throws control_plane_unavailable  the store is closed */
  async pass<T>(work: () => T | Promise<T>): Promise<T> {
    if (this.#isClosed) throw new WbError('control_plane_unavailable', 'the store is closed')
    const running = guard(work)
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
      throw asFault(error)
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await Promise.allSettled(this.#running)
  }
}

/** Creates the control rows of an embedded store. Reads run on this thread, writes on the host for writes. */
export function rowStore(connection: Connection, { writes }: Hosts, gate: Gate): RowStore {
  const rows = new Rows(connection)
  return {
    get: async (table, key) => gate.read(() => rows.get(table, key)),
    list: async (table, query) => gate.read(() => rows.list(table, query)),
    count: async (table, index, prefix) => gate.read(() => rows.count(table, index, prefix)),
    atomic: units => gate.pass(() => writes.run('write', { changes: [], rows: units })),
  }
}

/** Content of an embedded store. */
export function contentStore(connection: Connection, hosts: Hosts, gate: Gate, clock: Clock): ContentStore {
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
    fitted: fittedSpaces(connection, hosts, gate, clock),
  }
}

function fittedSpaces(
  connection: Connection,
  { reads, writes }: Hosts,
  gate: Gate,
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
