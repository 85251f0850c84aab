import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { fullVisibility } from '../src/access/row-access.ts'
import type { ContentRecord } from '../src/storage/content.ts'
import type { Filter } from '../src/storage/filter.ts'
import { call, createBase, startServer, unlimited } from './server.ts'

export interface LibrarySettings {
  /** Folder for the files of the library. */
  readonly folder: string
  /** Folder in which the packages of {@link packages} are installed. */
  readonly modules: string
  readonly dimension: number
  /** Number of all rows. */
  readonly rows: number
}

/** Rows with consecutive IDs. */
export interface VectorBatch {
  readonly first: number
  readonly vectors: readonly Float32Array[]
}

/** Inserts rows, then finishes all indexes and files. `write` and `finish` are measured, `prepare` is not. */
export interface VectorInserter<Prepared = unknown> {
  /** Process whose CPU time is measured. */
  readonly pid: number
  readonly batchSize: number
  prepare(batch: VectorBatch): Prepared
  write(prepared: Prepared): unknown
  finish(): unknown
  close(): unknown
}

export interface VectorSearcher {
  /** Process whose memory and CPU time are measured. */
  readonly pid: number
  /** False if the library cannot filter in JavaScript. */
  readonly canFilter: boolean
  /**
   * Returns the IDs of the ten nearest rows by cosine similarity.
   *
   * @param filtered  true to search only rows of {@link FILTERED_GROUP}
   */
  search(vector: Float32Array, filtered: boolean): number[] | Promise<number[]>
  close(): unknown
}

/** A way to store and search vectors. */
export interface VectorLibrary {
  readonly name: string
  insert(settings: LibrarySettings): VectorInserter | Promise<VectorInserter>
  open(settings: LibrarySettings): Promise<VectorSearcher>
}

export const NEAREST = 10
const GROUPS = 100
const FILTERED_GROUP = 7

/** Returns the group of a row, which the filter compares. */
export const groupOf = (id: number) => id % GROUPS

export const isInFilter = (id: number) => groupOf(id) === FILTERED_GROUP

const platform = `${process.platform}-${process.arch}`
const lancePlatform = `${platform}${{ linux: '-gnu', win32: '-msvc' }[process.platform as string] ?? ''}`

/** Packages by exact version. Those of a platform are listed because other optional packages are not installed. */
export const packages: Readonly<Record<string, string>> = {
  '@lancedb/lancedb': '0.39.0',
  [`@lancedb/lancedb-${lancePlatform}`]: '0.39.0',
  'apache-arrow': '18.1.0',
  usearch: '2.26.2',
  'sqlite-vec': '0.1.9',
  [`sqlite-vec-${platform.replace('win32', 'windows')}`]: '0.1.9',
}

const loaderOf = ({ modules }: LibrarySettings) => createRequire(join(modules, 'package.json'))

function joinVectors(vectors: readonly Float32Array[], dimension: number): Float32Array {
  const joined = new Float32Array(vectors.length * dimension)
  for (const [at, vector] of vectors.entries()) joined.set(vector, at * dimension)
  return joined
}

/** The storage of Workbase, with one thread and one commit for each 500 rows. */
const storage: VectorLibrary = {
  name: 'Workbase, storage in process',
  async insert({ folder, dimension }) {
    const { openEmbeddedStore } = await import('../src/storage/open.ts')
    const { content, close } = await openEmbeddedStore({ path: join(folder, 'workbase.db') })
    const collection = { dimension, metric: 'cosine', lexical: false, language: null, fitted: false } as const
    await content.write([{ op: 'createCollection', ...collectionKey, ...collection }], [])
    return {
      pid: process.pid,
      batchSize: 500,
      prepare: ({ first, vectors }) =>
        vectors.map((vector, at): ContentRecord => {
          const payload = { group: groupOf(first + at) }
          const empty = { documentId: null, chunkIndex: null, title: null, text: null }
          return { id: String(first + at), ...empty, payload, vector }
        }),
      async write(records) {
        const outcome = await content.write(
          [{ op: 'upsert', ...collectionKey, generation: 0, records: records as ContentRecord[] }],
          [],
        )
        if (!outcome.ok) throw new Error(outcome.reason)
      },
      finish() {},
      close,
    }
  },
  async open({ folder }) {
    const { openEmbeddedStore } = await import('../src/storage/open.ts')
    const { content, close } = await openEmbeddedStore({ path: join(folder, 'workbase.db') })
    const visibility = fullVisibility()
    const filter: Filter = { kind: 'in', key: 'group', values: [FILTERED_GROUP] }
    return {
      pid: process.pid,
      canFilter: true,
      async search(vector, filtered) {
        const query = { vector, limit: NEAREST, visibility, ...(filtered && { filter }) }
        const found = (await content.nearest(collectionKey, query)).map(({ record }) => record)
        const rows = await content.read(collectionKey, found, { vectors: false, visibility })
        return rows.map(({ id }) => Number(id))
      },
      close,
    }
  },
}

const collectionKey = { workspaceId: 'bench', name: 'bench' }

/** `wb serve` and a client in one other process, with four requests of 500 rows at the same time. */
const http: VectorLibrary = {
  name: 'Workbase, over HTTP',
  async insert({ folder, dimension }) {
    const server = await startServer(folder, { config: unlimited })
    const path = await createBase(server, { dimension })
    writeFileSync(join(folder, 'path'), path)
    const rowsPerRequest = 500
    return {
      pid: server.pid,
      batchSize: 4 * rowsPerRequest,
      prepare({ first, vectors }) {
        const records = vectors.map((vector, at) => ({
          id: String(first + at),
          vector: Array.from(vector, value => Number(value.toFixed(6))),
          payload: { group: groupOf(first + at) },
        }))
        const starts = Array.from({ length: Math.ceil(records.length / rowsPerRequest) }, (_, n) => n)
        return starts.map(n =>
          JSON.stringify({ records: records.slice(n * rowsPerRequest, (n + 1) * rowsPerRequest) }),
        )
      },
      write: bodies =>
        Promise.all(
          (bodies as string[]).map(async body => {
            const headers = { 'content-type': 'application/json' }
            const response = await fetch(new URL(`${path}/records`, server.url), {
              method: 'POST',
              headers,
              body,
            })
            if (!response.ok) throw new Error(await response.text())
          }),
        ),
      finish() {},
      close: server.stop,
    }
  },
  async open({ folder }) {
    const server = await startServer(folder, { config: unlimited })
    const path = readFileSync(join(folder, 'path'), 'utf8')
    return {
      pid: server.pid,
      canFilter: true,
      async search(vector, filtered) {
        const hits = await call<{ id: string }[]>(server, 'POST', `${path}/search`, {
          vector: Array.from(vector),
          limit: NEAREST,
          hybrid: false,
          ...(filtered && { filter: { group: FILTERED_GROUP } }),
        })
        return hits.map(({ id }) => Number(id))
      },
      close: server.stop,
    }
  },
}

/* The parts of the packages that the benchmark uses. They are installed in a temporary folder, without their types. */

interface LanceQuery {
  distanceType(type: string): LanceQuery
  select(columns: readonly string[]): LanceQuery
  limit(rows: number): LanceQuery
  where(condition: string): LanceQuery
  refineFactor(factor: number): LanceQuery
  toArray(): Promise<{ id: number }[]>
}

interface LanceTable {
  add(data: unknown): Promise<unknown>
  createIndex(column: string, options: { config: unknown }): Promise<void>
  optimize(options: { cleanupOlderThan: Date }): Promise<unknown>
  vectorSearch(vector: Float32Array): LanceQuery
}

interface Lance {
  connect(folder: string): Promise<{
    createTable(name: string, data: unknown): Promise<LanceTable>
    openTable(name: string): Promise<LanceTable>
    close(): void
  }>
  readonly Index: {
    bitmap(): unknown
    hnswSq(options: object): unknown
    ivfRq(options: object): unknown
  }
}

interface LanceOptions {
  /** Creates the configuration of the vector index; absent for exact searches without one. */
  readonly index?: (lance: Lance, rows: number) => unknown
  readonly refineFactor?: number
}

/**
 * LanceDB with one commit for each 10,000 rows, a bitmap index on the filtered column, and `optimize` at the end. The
 * parameters of the vector indexes are those that its documentation recommends.
 *
 * @see https://docs.lancedb.com/indexing/vector-index
 */
function lanceDb(name: string, { index, refineFactor }: LanceOptions): VectorLibrary {
  return {
    name: `LanceDB, ${name}`,
    async insert({ dimension, rows, ...settings }) {
      const load = loaderOf({ dimension, rows, ...settings })
      const lance = load('@lancedb/lancedb') as Lance
      const arrow = load('apache-arrow')
      const connection = await lance.connect(settings.folder)
      let table: LanceTable | undefined
      return {
        pid: process.pid,
        batchSize: 10_000,
        prepare({ first, vectors }) {
          const numbers = Int32Array.from(vectors, (_, at) => first + at)
          const values = arrow.makeData({
            type: new arrow.Float32(),
            data: joinVectors(vectors, dimension),
          })
          const item = new arrow.Field('item', new arrow.Float32(), true)
          const type = new arrow.FixedSizeList(dimension, item)
          const lists = arrow.makeData({ type, length: vectors.length, nullCount: 0, child: values })
          return new arrow.Table({
            id: arrow.makeVector(numbers),
            group: arrow.makeVector(numbers.map(groupOf)),
            vector: arrow.makeVector(lists),
          })
        },
        async write(data) {
          if (table) await table.add(data)
          else table = await connection.createTable('bench', data)
        },
        async finish() {
          await table!.createIndex('group', { config: lance.Index.bitmap() })
          if (index) await table!.createIndex('vector', { config: index(lance, rows) })
          // The second call deletes the files that the first one replaced.
          for (let call = 0; call < 2; call++) await table!.optimize({ cleanupOlderThan: new Date() })
        },
        close: () => connection.close(),
      }
    },
    async open(settings) {
      const lance = loaderOf(settings)('@lancedb/lancedb') as Lance
      const connection = await lance.connect(settings.folder)
      const table = await connection.openTable('bench')
      return {
        pid: process.pid,
        canFilter: true,
        async search(vector, filtered) {
          let query = table
            .vectorSearch(vector)
            .distanceType('cosine')
            .select(['id', '_distance'])
            .limit(NEAREST)
          if (filtered) query = query.where(`\`group\` = ${FILTERED_GROUP}`)
          if (refineFactor !== undefined) query = query.refineFactor(refineFactor)
          return (await query.toArray()).map(({ id }) => id)
        },
        close: () => connection.close(),
      }
    },
  }
}

interface UsearchIndex {
  add(keys: BigUint64Array, vectors: Float32Array, threads: number): void
  search(vector: Float32Array, limit: number, threads: number): { keys: BigUint64Array }
  save(path: string): void
  load(path: string): void
}

type Usearch = { Index: new (options: { dimensions: number; metric: string }) => UsearchIndex }

/** An HNSW graph with the default parameters in memory, saved to a file at the end. */
const usearch: VectorLibrary = {
  name: 'usearch',
  insert({ folder, dimension, ...settings }) {
    const { Index } = loaderOf({ folder, dimension, ...settings })('usearch') as Usearch
    const index = new Index({ dimensions: dimension, metric: 'cos' })
    return {
      pid: process.pid,
      batchSize: 10_000,
      prepare: ({ first, vectors }) => ({
        keys: BigUint64Array.from(vectors, (_, at) => BigInt(first + at)),
        joined: joinVectors(vectors, dimension),
      }),
      write(prepared) {
        const { keys, joined } = prepared as { keys: BigUint64Array; joined: Float32Array }
        // 0 uses all cores.
        index.add(keys, joined, 0)
      },
      finish: () => index.save(join(folder, 'bench.usearch')),
      close() {},
    }
  },
  async open({ folder, dimension, ...settings }) {
    const { Index } = loaderOf({ folder, dimension, ...settings })('usearch') as Usearch
    const index = new Index({ dimensions: dimension, metric: 'cos' })
    index.load(join(folder, 'bench.usearch'))
    return {
      pid: process.pid,
      canFilter: false,
      search: vector => Array.from(index.search(vector, NEAREST, 1).keys, Number),
      close() {},
    }
  },
}

/**
 * sqlite-vec with a metadata column for the filter, in SQLite with the durability of Workbase: a write-ahead log that is
 * synchronized after each commit of 500 rows. The file is mapped into memory, which reduces the CPU time of a search by a
 * third.
 */
const sqliteVec: VectorLibrary = {
  name: 'sqlite-vec',
  async insert({ folder, dimension, ...settings }) {
    const database = await openSqliteVec({ folder, dimension, ...settings })
    database.exec(
      `CREATE VIRTUAL TABLE bench USING vec0(
        id INTEGER PRIMARY KEY, vector float[${dimension}] distance_metric=cosine, category INTEGER)`,
    )
    const insert = database.prepare('INSERT INTO bench (id, vector, category) VALUES (?, ?, ?)')
    const write = database.transaction(({ first, vectors }: VectorBatch) => {
      for (const [at, vector] of vectors.entries())
        insert.run(BigInt(first + at), vector, BigInt(groupOf(first + at)))
    })
    return {
      pid: process.pid,
      batchSize: 500,
      prepare: batch => batch,
      write: batch => write(batch as VectorBatch),
      finish() {},
      close: () => database.close(),
    }
  },
  async open(settings) {
    const database = await openSqliteVec(settings)
    const nearest = `SELECT id FROM bench WHERE vector MATCH ? AND k = ${NEAREST}`
    const all = database.prepare(nearest).pluck()
    const some = database.prepare(`${nearest} AND category = ${FILTERED_GROUP}`).pluck()
    return {
      pid: process.pid,
      canFilter: true,
      search: (vector, filtered) => (filtered ? some : all).all(vector) as number[],
      close: () => database.close(),
    }
  },
}

async function openSqliteVec(settings: LibrarySettings) {
  const { default: Database } = await import('../src/storage/sqlite/driver.ts')
  const database = new Database(join(settings.folder, 'bench.db'))
  database.loadExtension(loaderOf(settings)('sqlite-vec').getLoadablePath())
  database.pragma('journal_mode = WAL')
  database.pragma('synchronous = FULL')
  database.pragma('mmap_size = 2000000000')
  return database
}

export const libraries: readonly VectorLibrary[] = [
  storage,
  http,
  lanceDb('no vector index', {}),
  lanceDb('IVF_HNSW_SQ', {
    index: ({ Index }, rows) =>
      Index.hnswSq({ distanceType: 'cosine', numPartitions: Math.max(1, Math.floor(rows / 1_048_576)) }),
  }),
  lanceDb('IVF_RQ, refined', {
    index: ({ Index }, rows) =>
      Index.ivfRq({ distanceType: 'cosine', numPartitions: Math.max(1, Math.floor(rows / 4_096)) }),
    refineFactor: 10,
  }),
  usearch,
  sqliteVec,
]
