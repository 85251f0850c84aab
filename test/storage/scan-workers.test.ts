import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Metric } from '../../src/storage/content.ts'
import { openEmbeddedStore } from '../../src/storage/open.ts'
import {
  createScanMemory,
  loadScanModule,
  loadSharedScanModule,
  openKernels,
  PAGE_BYTES,
} from '../../src/storage/scan/module.ts'
import { scanBlocks } from '../../src/storage/scan/scan-blocks.ts'
import { SLICE_ROWS } from '../../src/storage/scan/scan-job.ts'
import { ScanWorkers, type ScanWorkersOptions } from '../../src/storage/scan/scan-workers.ts'
import { Segment } from '../../src/storage/scan/segment.ts'
import { AllowedRecords } from '../../src/storage/sqlite/allowed-records.ts'
import { findCollection } from '../../src/storage/sqlite/collections.ts'
import { VectorIndex } from '../../src/storage/sqlite/vector-index.ts'
import { programPath } from '../harness/program.ts'
import { all, createCollection, key, record, upsert } from './content-data.ts'
import { scratchPath } from './scratch.ts'
import { createVectors, openVectorStore, vectorOf as shortVectorOf, vectorChanges } from './vector-store.ts'
import { startProgram } from './writers.ts'

const metrics: Metric[] = ['cosine', 'dot', 'euclidean']

function openWorkers(options: ScanWorkersOptions = {}): ScanWorkers {
  const workers = new ScanWorkers({ count: 3, rowBytesMin: 0, ...options })
  onTestFinished(() => workers.close())
  return workers
}

function vectorOf(seed: number, dimension: number): Float32Array {
  return Float32Array.from({ length: dimension }, (_, at) => Math.sin(seed * 12.9898 + at * 78.233))
}

/** Fills a segment with the vectors of the records from 0 to `size` - 1. */
function openSegment(size: number, dimension: number, metric: Metric, workers: ScanWorkers): Segment {
  const read = (records: readonly number[]) => records.map(number => vectorOf(number, dimension))
  const segment = new Segment(loadScanModule(), dimension, metric, read, workers)
  for (let number = 0; number < size; number++) segment.append(number, vectorOf(number, dimension))
  return segment
}

/** The result of a scan of all exact vectors of records. */
function exactNearest(
  records: readonly number[],
  question: { metric: Metric; query: Float32Array; k: number; allowed?: ReadonlySet<number> | undefined },
) {
  const dimension = question.query.length
  const vectors = new Float32Array(records.length * dimension)
  for (const [at, number] of records.entries()) vectors.set(vectorOf(number, dimension), at * dimension)
  return scanBlocks(loadScanModule(), [{ records, vectors }], { dimension, ...question })
}

/** Searches until workers have computed slices. */
async function untilHelped(workers: ScanWorkers, search: () => void): Promise<void> {
  const before = workers.finishedSlices
  while (workers.finishedSlices === before) {
    search()
    await new Promise(setImmediate)
  }
}

const numbersTo = (size: number) => Array.from({ length: size }, (_, number) => number)

const question = fc.record({
  metric: fc.constantFrom(...metrics),
  dimension: fc.constantFrom(1, 16, 37, 100),
  size: fc.oneof(fc.nat(3 * SLICE_ROWS), fc.constantFrom(0, 1, SLICE_ROWS, SLICE_ROWS + 1, 2 * SLICE_ROWS)),
  added: fc.nat(SLICE_ROWS),
  removed: fc.array(fc.nat(3 * SLICE_ROWS), { maxLength: 20 }),
  seed: fc.nat(),
  k: fc.nat(40),
  allowedEvery: fc.constantFrom(undefined, 2, 3),
})

test('searches with several threads equal a scan of all exact vectors', async () => {
  const workers = openWorkers()
  fc.assert(
    fc.property(question, ({ metric, dimension, size, added, removed, seed, k, allowedEvery }) => {
      const segment = openSegment(size, dimension, metric, workers)
      const query = vectorOf(-seed, dimension)
      const allowed = allowedEvery && new Set(numbersTo(size).filter(number => number % allowedEvery === 0))
      const expectExact = (records: readonly number[]) =>
        expect(segment.nearest(query, k, allowed)).toEqual(
          exactNearest(records, { metric, query, k, allowed }),
        )
      expectExact(numbersTo(size))
      // The memory grows, and rows move to other slots.
      for (let number = size; number < size + added; number++)
        segment.append(number, vectorOf(number, dimension))
      for (const number of removed) segment.remove(number)
      const gone = new Set(removed)
      expectExact(numbersTo(size + added).filter(number => !gone.has(number)))
      segment.close()
    }),
    { numRuns: 60 },
  )
  const segment = openSegment(20 * SLICE_ROWS, 100, 'cosine', workers)
  await untilHelped(workers, () => segment.nearest(vectorOf(-1, 100), 10))
  expect(workers.threadCount).toBe(3)
})

test('each row is scanned once, also if workers do most of the work, and segments and sizes change', async () => {
  const workers = openWorkers()
  const strideBytes = 16
  const createRows = (scale: number) => {
    const resultsOffset = PAGE_BYTES
    const rowsOffset = resultsOffset + workers.resultBytes
    const memory = createScanMemory(
      loadSharedScanModule(),
      1 + Math.ceil((rowsOffset + 40 * SLICE_ROWS * strideBytes) / PAGE_BYTES),
    )
    const levels = new Int8Array(memory.buffer, rowsOffset)
    for (let at = 0; at < levels.length; at++) levels[at] = (at * scale) % 127
    new Int16Array(memory.buffer, 0, strideBytes).fill(3)
    return { rows: { memory, strideBytes, rowsOffset, resultsOffset }, levels }
  }
  const all = [createRows(7), createRows(31)]
  const pause = new Int32Array(new SharedArrayBuffer(4))
  for (let job = 0; job < 40 || workers.finishedSlices < 1_000; job++) {
    const { rows, levels } = all[job % 3 === 0 ? 1 : 0]!
    const size = 1 + ((job * 4_111) % (40 * SLICE_ROWS))
    const kernels = openKernels(loadSharedScanModule(), rows.memory)
    const products = new Float64Array(size).fill(Number.NaN)
    let repeated = 0
    workers.scan({
      rows,
      size,
      compute(from, count) {
        // The calling thread is slow in some jobs.
        if (job % 2 === 0) Atomics.wait(pause, 0, 0, 1)
        kernels.quantizedDotInOrder(
          0,
          rows.rowsOffset + from * strideBytes,
          count,
          strideBytes,
          PAGE_BYTES / 2,
        )
        return new Float64Array(rows.memory.buffer, PAGE_BYTES / 2, count)
      },
      offer(results, from, count) {
        for (let at = 0; at < count; at++) {
          if (!Number.isNaN(products[from + at]!)) repeated++
          products[from + at] = results[at]!
        }
      },
    })
    const wrong = numbersTo(size).filter(row => {
      const level = levels.subarray(row * strideBytes, (row + 1) * strideBytes)
      return products[row] !== 3 * level.reduce((sum, value) => sum + value, 0)
    })
    expect({ repeated, wrong }).toEqual({ repeated: 0, wrong: [] })
  }
})

test('searches continue without workers that fail or hang in a slice', async () => {
  const workers = openWorkers({ count: 2, entry: programPath('scan/failing-worker') })
  const segment = openSegment(20 * SLICE_ROWS, 64, 'dot', workers)
  const query = vectorOf(-2, 64)
  const expected = exactNearest(numbersTo(segment.size), { metric: 'dot', query, k: 20 })
  const search = () => expect(segment.nearest(query, 20)).toEqual(expected)
  search()
  expect(workers.threadCount).toBe(2)
  while (workers.threadCount === 2) {
    search()
    await new Promise(setImmediate)
  }
  search()
  expect(workers.finishedSlices).toBe(0)
})

test('workers help again after a scan that failed', async () => {
  const workers = openWorkers()
  const segment = openSegment(20 * SLICE_ROWS, 100, 'cosine', workers)
  const memory = createScanMemory(loadSharedScanModule(), 2 + Math.ceil(workers.resultBytes / PAGE_BYTES))
  const failing = {
    rows: {
      memory,
      strideBytes: 16,
      rowsOffset: PAGE_BYTES + workers.resultBytes,
      resultsOffset: PAGE_BYTES,
    },
    size: 1,
    compute: () => new Float64Array(1),
    offer() {
      throw new Error('the scan failed')
    },
  }
  expect(() => workers.scan(failing)).toThrow('the scan failed')
  await untilHelped(workers, () => segment.nearest(vectorOf(-1, 100), 10))
})

test('a worker that cannot start fails no search', async () => {
  const workers = openWorkers({ entry: scratchPath() })
  const segment = openSegment(3 * SLICE_ROWS, 8, 'cosine', workers)
  const before = segment.nearest(vectorOf(-3, 8), 5)
  await expect.poll(() => workers.threadCount).toBe(0)
  expect(segment.nearest(vectorOf(-3, 8), 5)).toEqual(before)
})

test('threads start at the first scan of many rows, and end when their rows are released or with `close`', async () => {
  const workers = openWorkers({ rowBytesMin: 2 * SLICE_ROWS * 16 })
  const small = openSegment(SLICE_ROWS, 16, 'cosine', workers)
  const large = openSegment(2 * SLICE_ROWS, 16, 'cosine', workers)
  const query = vectorOf(-4, 16)
  small.nearest(query, 3)
  large.nearest(query, 3, new Set([1, 2, 3]))
  large.nearestOfEach([
    { query, k: 3 },
    { query, k: 4 },
  ])
  expect(workers.threadCount).toBe(0)
  const hits = large.nearest(query, 3)
  expect(workers.threadCount).toBe(3)
  small.close()
  expect(workers.threadCount).toBe(3)
  large.close()
  expect(workers.threadCount).toBe(0)
  expect(large.nearest(query, 3)).toEqual(hits)
  expect(workers.threadCount).toBe(3)
  await workers.close()
  expect(workers.threadCount).toBe(0)
  expect(large.nearest(query, 3)).toEqual(hits)
  expect(workers.threadCount).toBe(0)
})

test('searches equal a full scan while another process writes', async () => {
  const store = await openVectorStore(scratchPath())
  onTestFinished(() => store.connection.close())
  await store.write([createVectors('euclidean'), ...vectorChanges(1)])
  const writer = startProgram('quantized/writer', store.path, '1')
  onTestFinished(() => void writer.child.kill('SIGKILL'))
  const workers = openWorkers()
  const index = (options: object) =>
    new VectorIndex(store.connection, new AllowedRecords(store.connection), options)
  const [shared, scan] = [index({ workers }), index({ bytesMax: 1 })]
  const query = { vector: shortVectorOf(5), limit: 30, visibility: all }
  const version = () => findCollection(store.connection, key)!.version
  for (let compared = 0; compared < 10 || writer.acknowledged.length < 10; ) {
    const before = version()
    const [hits, exact] = [shared.nearest(key, query), scan.nearest(key, query)]
    if (version() === before) {
      expect(hits).toEqual(exact)
      compared++
    }
    await new Promise(resolve => setTimeout(resolve, 5))
  }
  expect(writer.errors()).toBe('')
})

test('a collection that becomes large is searched with workers', async () => {
  const store = await openVectorStore(scratchPath())
  onTestFinished(() => store.connection.close())
  const workers = openWorkers({ rowBytesMin: 1_000 * 16 })
  const allowed = new AllowedRecords(store.connection)
  const [shared, scan] = [
    new VectorIndex(store.connection, allowed, { workers }),
    new VectorIndex(store.connection, allowed, { bytesMax: 1 }),
  ]
  const query = { vector: shortVectorOf(5), limit: 30, visibility: all }
  const expectExact = (threads: number) => {
    expect(shared.nearest(key, query)).toEqual(scan.nearest(key, query))
    expect(workers.threadCount).toBe(threads)
  }
  await store.write([createVectors(), ...vectorChanges(1)])
  expectExact(0)
  await store.write(vectorChanges(2))
  expectExact(3)
})

describe('a store with a large collection', () => {
  /** 9 MB of quantized vectors. */
  const [dimension, size] = [3_000, 3_000]

  async function largeStore() {
    const path = scratchPath()
    const store = await openEmbeddedStore({ path, threads: true })
    onTestFinished(() => store.close())
    const records = numbersTo(size).map(n => record(`r${n}`, { vector: vectorOf(n, dimension) }))
    await store.content.write([createCollection({ dimension, lexical: false }), upsert(...records)], [])
    return { path, store }
  }

  test('searches one after another, together, and during writes have the same results', async () => {
    const { path, store } = await largeStore()
    const alone = await openEmbeddedStore({ path })
    onTestFinished(() => alone.close())
    const queries = numbersTo(12).map(n => ({ vector: vectorOf(-n, dimension), limit: 10, visibility: all }))
    const expected = await Promise.all(queries.map(query => alone.content.nearest(key, query)))
    for (const [at, query] of queries.entries())
      expect(await store.content.nearest(key, query)).toEqual(expected[at])
    const far = record('far', { vector: vectorOf(0, dimension).map(() => 0) })
    const [hits] = await Promise.all([
      Promise.all(queries.map(query => store.content.nearest(key, query))),
      ...numbersTo(12).map(() => store.content.write([upsert(far)], [])),
    ])
    expect(hits).toEqual(expected)
  })

  test('it can be closed during a search, and does not keep a process running that does not close it', async () => {
    const { path, store } = await largeStore()
    const query = { vector: new Float32Array(dimension).fill(1), limit: 5, visibility: all }
    const hits = await store.content.nearest(key, query)
    const running = [store.content.nearest(key, query), store.content.nearest(key, query)]
    await store.close()
    expect(await Promise.all(running)).toEqual([hits, hits])
    const child = startProgram('scan/searcher', path, String(dimension))
    expect(await child.ended, child.errors()).toBe(0)
    expect(child.acknowledged).toEqual([hits.map(({ record: number }) => number).join(' ')])
  })
})
