import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import fc from 'fast-check'
import { beforeAll, describe, expect, test } from 'vitest'
import { packageRoot } from '../../src/base/package.ts'
import type { Metric, ScoredRecord } from '../../src/storage/content.ts'
import { loadScanModule, type ScanModule } from '../../src/storage/scan/module.ts'
import { scanBlocks, type VectorBlock } from '../../src/storage/scan/scan-blocks.ts'
import { Segment } from '../../src/storage/scan/segment.ts'

const metrics: Metric[] = ['cosine', 'dot', 'euclidean']
const greatest = 3.4028234663852886e38
const least = 1.401298464324817e-45
let module: ScanModule

beforeAll(() => {
  execFileSync(process.execPath, [join(packageRoot(), 'scripts', 'build-wasm.mjs')])
  module = loadScanModule()
})

interface Reference extends ScoredRecord {
  /** Maximum rounding error of the score. */
  slack: number
}

function reference(metric: Metric, query: Float32Array, record: number, row: Float32Array): Reference {
  let [dot, products, distance, querySquare, rowSquare] = [0, 0, 0, 0, 0]
  for (let i = 0; i < query.length; i++) {
    const a = query[i]!
    const b = row[i]!
    dot += a * b
    products += Math.abs(a * b)
    distance += (a - b) ** 2
    querySquare += a * a
    rowSquare += b * b
  }
  if (metric === 'dot') return { record, score: dot, slack: 1e-12 * products }
  if (metric === 'euclidean') {
    const score = 1 / (1 + Math.sqrt(distance))
    return { record, score, slack: 1e-12 * score }
  }
  const norms = Math.sqrt(querySquare) * Math.sqrt(rowSquare)
  return { record, score: norms === 0 ? 0 : dot / norms, slack: 1e-12 }
}

interface Question {
  metric: Metric
  query: Float32Array
  k: number
  allowed?: ReadonlySet<number>
}

function byRank(a: ScoredRecord, b: ScoredRecord): number {
  return b.score - a.score || a.record - b.record
}

/** Compares a result with brute force, up to the rounding of scores. */
function expectNearest(
  answer: ScoredRecord[],
  rows: ReadonlyMap<number, Float32Array>,
  question: Question,
): void {
  const { metric, query, k, allowed } = question
  const all = [...rows]
    .filter(([record]) => !allowed || allowed.has(record))
    .map(([record, row]) => reference(metric, query, record, row))
  const left = new Map(all.map(one => [one.record, one]))
  expect(answer).toEqual(answer.toSorted(byRank))
  expect(answer).toHaveLength(Math.min(k, all.length))
  // One assertion for all rows, because thousands of them would take most of the time.
  const wrong = answer.filter(({ record, score }) => {
    const own = left.get(record)!
    left.delete(record)
    return !(Math.abs(score - own.score) <= own.slack)
  })
  expect(wrong).toEqual([])
  const last = answer.at(-1)?.score ?? Number.POSITIVE_INFINITY
  expect([...left.values()].filter(({ score, slack }) => !(score - slack <= last))).toEqual([])
}

/** Opens an empty segment that reads exact vectors from `rows`. */
function openSegment(rows: ReadonlyMap<number, Float32Array>, dimension: number, metric: Metric): Segment {
  return new Segment(module, dimension, metric, records => records.map(record => rows.get(record)!))
}

function fill(rows: ReadonlyMap<number, Float32Array>, dimension: number, metric: Metric): Segment {
  const segment = openSegment(rows, dimension, metric)
  for (const [record, row] of rows) segment.append(record, row)
  return segment
}

/** Splits rows into blocks of uneven lengths, in order. */
function* blocksOf(
  rows: ReadonlyMap<number, Float32Array>,
  dimension: number,
  length: number,
): Generator<VectorBlock> {
  const entries = [...rows]
  for (let from = 0; from < entries.length; from += length) {
    const part = entries.slice(from, from + length)
    const vectors = new Float32Array(part.length * dimension)
    for (const [i, [, row]] of part.entries()) vectors.set(row, i * dimension)
    yield { records: part.map(([record]) => record), vectors }
  }
}

/** A deterministic vector for a seed, with components in [-1, 1). */
function vectorOf(seed: number, dimension: number): Float32Array {
  let state = seed + 1
  const vector = new Float32Array(dimension)
  for (let i = 0; i < dimension; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) | 0
    vector[i] = state / 2 ** 31
  }
  return vector
}

const component = fc.oneof(
  fc.integer({ min: -2, max: 2 }),
  fc.float({ noNaN: true, noDefaultInfinity: true }),
  fc.float({ noNaN: true, min: -1, max: 1 }),
  fc.constantFrom(greatest, -greatest, least, -least),
)

function vectorIn(dimension: number): fc.Arbitrary<Float32Array> {
  const free = fc.array(component, { minLength: dimension, maxLength: dimension, size: 'max' })
  return free.map(values => Float32Array.from(values))
}

/** A dimension, a sequence of changes to records, and a query. */
const history = fc.constantFrom(1, 2, 3, 4, 5, 7, 8, 17, 64).chain(dimension =>
  fc.record({
    dimension: fc.constant(dimension),
    metric: fc.constantFrom(...metrics),
    events: fc.array(fc.record({ record: fc.nat(30), vector: fc.option(vectorIn(dimension), { freq: 3 }) }), {
      maxLength: 80,
      size: 'max',
    }),
    query: vectorIn(dimension),
    k: fc.nat(40),
    allowed: fc.option(
      fc.uniqueArray(fc.nat(40)).map(records => new Set(records)),
      { nil: undefined },
    ),
    length: fc.integer({ min: 1, max: 9 }),
  }),
)

test('search after any sequence of changes equals brute force, resident and in blocks', () => {
  fc.assert(
    fc.property(history, ({ dimension, events, length, ...question }) => {
      const rows = new Map<number, Float32Array>()
      const segment = openSegment(rows, dimension, question.metric)
      const caching = openSegment(rows, dimension, question.metric)
      caching.cachesExact = true
      for (const { record, vector } of events) {
        if (vector) {
          segment.append(record, vector)
          caching.append(record, vector)
          rows.set(record, vector)
        } else {
          expect(caching.remove(record)).toBe(rows.has(record))
          expect(segment.remove(record)).toBe(rows.delete(record))
        }
        caching.nearest(question.query, 2)
      }
      const answer = segment.nearest(question.query, question.k, question.allowed)
      expect(caching.nearest(question.query, question.k, question.allowed)).toEqual(answer)
      const others = [7, 3, 0].map(k => ({ ...question, query: question.query.toReversed(), k }))
      const questions = [...others, question, { ...question, allowed: undefined }, others[0]!]
      expect(segment.nearestOfEach(questions)).toEqual(
        questions.map(({ query, k, allowed }) => segment.nearest(query, k, allowed)),
      )
      const copied = openSegment(rows, dimension, question.metric)
      copied.appendQuantized(segment.quantizedRows())
      expect(copied.nearest(question.query, question.k, question.allowed)).toEqual(answer)
      expect(segment.size).toBe(rows.size)
      expectNearest(answer, rows, question)
      expect(scanBlocks(module, blocksOf(rows, dimension, length), { dimension, ...question })).toEqual(
        answer,
      )
    }),
    { numRuns: 250 },
  )
})

describe.each(metrics)('%s', metric => {
  test.each([1, 3, 384])(
    'finds k up to 1000 of 9,001 rows with any share allowed, dimension %i',
    dimension => {
      const rows = new Map(Array.from({ length: 9_001 }, (_, i) => [i * 3, vectorOf(i, dimension)]))
      const segment = fill(rows, dimension, metric)
      const query = vectorOf(-7, dimension)
      for (const [k, step] of [
        [1, 1],
        [10, 2],
        [1_000, 1],
        [1_000, 3],
        [1_000, 7],
        [1_000, 2_000],
      ] as const) {
        const allowed = new Set([...rows.keys()].filter((_, i) => i % step === 0))
        const answer = segment.nearest(query, k, allowed)
        expectNearest(answer, rows, { metric, query, k, allowed })
        const blocks = blocksOf(rows, dimension, 1_111)
        expect(scanBlocks(module, blocks, { dimension, metric, query, k, allowed })).toEqual(answer)
      }
    },
  )

  test.each([1, 2, 4_097, 9_001])(
    'several queries in one pass have the results of each, among %i rows',
    size => {
      const rows = new Map(Array.from({ length: size }, (_, i) => [i, vectorOf(i, 37)]))
      const segment = fill(rows, 37, metric)
      const queries = Array.from({ length: 19 }, (_, n) => {
        const step = [1, 2, 50][n % 3]!
        const allowed =
          n % 2 === 0 ? undefined : new Set([...rows.keys()].filter(record => record % step === 0))
        return { query: vectorOf(-n, 37), k: 1 + n * 11, allowed }
      })
      for (const count of [2, 3, 19])
        expect(segment.nearestOfEach(queries.slice(0, count))).toEqual(
          queries.slice(0, count).map(({ query, k, allowed }) => segment.nearest(query, k, allowed)),
        )
      const { query, k, allowed } = queries[5]!
      expectNearest(segment.nearestOfEach(queries)[5]!, rows, { metric, query, k, allowed })
    },
  )

  test('the score of a row is bit-identical in every search', () => {
    const rows = new Map(Array.from({ length: 5_003 }, (_, i) => [i, vectorOf(i, 21)]))
    const segment = fill(rows, 21, metric)
    const query = vectorOf(-1, 21)
    const all = new Map(segment.nearest(query, rows.size).map(({ record, score }) => [record, score]))
    for (const size of [1, 2, 3, 5, 1_000]) {
      const allowed = new Set(Array.from({ length: size }, (_, i) => (i * 1_009) % rows.size))
      const found = segment.nearest(query, size, allowed)
      expect(found.filter(({ record, score }) => !Object.is(score, all.get(record)))).toEqual([])
    }
  })

  test('supports dimension 16384 with values up to the largest float', () => {
    const rows = new Map<number, Float32Array>()
    for (let i = 0; i < 40; i++)
      rows.set(
        i,
        vectorOf(i, 16_384).map(value => value * (i % 2 ? greatest : 2 ** (-3 * i))),
      )
    rows.set(40, new Float32Array(16_384).fill(greatest))
    rows.set(41, new Float32Array(16_384).fill(-greatest))
    rows.set(42, new Float32Array(16_384).fill(least))
    rows.set(43, new Float32Array(16_384))
    const segment = fill(rows, 16_384, metric)
    for (const query of [rows.get(40)!, rows.get(42)!, rows.get(43)!, vectorOf(5, 16_384)]) {
      const question = { metric, query, k: 44 }
      const answer = segment.nearest(query, 44)
      expect(answer.every(({ score }) => Number.isFinite(score))).toBe(true)
      expectNearest(answer, rows, question)
      expect(scanBlocks(module, blocksOf(rows, 16_384, 7), { dimension: 16_384, ...question })).toEqual(
        answer,
      )
    }
  })

  test('distinguishes 5,000 rows that differ in the last bit', () => {
    const base = vectorOf(3, 384)
    const rows = new Map<number, Float32Array>()
    for (let i = 0; i < 5_000; i++) {
      const row = base.slice()
      new Int32Array(row.buffer)[i % 384]! += Math.floor(i / 384) - 6
      rows.set(i, row)
    }
    const segment = fill(rows, 384, metric)
    for (const query of [base, vectorOf(4, 384)])
      for (const k of [10, 1_000]) expectNearest(segment.nearest(query, k), rows, { metric, query, k })
  })

  test('orders equal scores by record, regardless of insertion order', () => {
    const records = Array.from({ length: 500 }, (_, i) => (i * 167) % 500)
    const segment = fill(new Map(records.map(record => [record, Float32Array.of(1, 2, 3)])), 3, metric)
    const answer = segment.nearest(Float32Array.of(3, 2, 1), 100).map(({ record }) => record)
    expect(answer).toEqual(Array.from({ length: 100 }, (_, i) => i))
  })
})

test('cosine is 0 with a zero vector, and exactly 1 or -1 for parallel vectors', () => {
  const vector = vectorOf(11, 200)
  const rows = new Map([
    [1, vector.map(value => -value)],
    [2, new Float32Array(200)],
    [3, vector.map(value => value * 4)],
  ])
  const segment = fill(rows, 200, 'cosine')
  expect(segment.nearest(vector, 3)).toEqual([
    { record: 3, score: 1 },
    { record: 2, score: 0 },
    { record: 1, score: -1 },
  ])
  expect(segment.nearest(new Float32Array(200), 1)).toEqual([{ record: 1, score: 0 }])
})

test('an empty segment, an empty filter and k = 0 return nothing', () => {
  const query = Float32Array.of(1, 1)
  expect(fill(new Map(), 2, 'dot').nearest(query, 5)).toEqual([])
  const segment = fill(new Map([[1, query]]), 2, 'dot')
  expect(segment.nearest(query, 0)).toEqual([])
  expect(segment.nearest(query, 5, new Set())).toEqual([])
  expect(scanBlocks(module, [], { dimension: 2, metric: 'dot', query, k: 5 })).toEqual([])
})

test('memory doubles when full, is reused after removal, and equals a reservation', () => {
  const grown = openSegment(new Map(), 1_000, 'dot')
  const reserved = openSegment(new Map(), 1_000, 'dot')
  reserved.reserve(1_000)
  const before = reserved.bytes
  for (let i = 0; i < 1_000; i++) {
    grown.append(i, vectorOf(i, 1_000))
    reserved.append(i, vectorOf(i, 1_000))
  }
  const mapBytes = 1_000 * 40
  expect(reserved.bytes - before).toBe(mapBytes)
  expect(before).toBeGreaterThan(1_000_000)
  expect(before).toBeLessThan(1_200_000)
  expect(grown.bytes).toBeLessThan(2 * before + mapBytes)
  for (let i = 0; i < 1_000; i++) {
    grown.remove(i)
    grown.append(i + 1_000, vectorOf(i, 1_000))
  }
  expect(grown.size).toBe(1_000)
  expect(grown.bytes).toBeLessThan(2 * before + mapBytes)
})

test('rejects wrong dimensions', () => {
  for (const dimension of [0, -1, 1.5, Number.NaN, 16_385])
    expect(() => openSegment(new Map(), dimension, 'dot')).toThrow(RangeError)
  const segment = openSegment(new Map(), 3, 'dot')
  expect(() => segment.append(1, new Float32Array(2))).toThrow(RangeError)
  expect(() => segment.nearest(new Float32Array(4), 1)).toThrow(RangeError)
  expect(() => segment.reserve(2 ** 32)).toThrow(RangeError)
  const question = { dimension: 3, metric: 'dot', query: new Float32Array(3), k: 1 } as const
  const blocks = [{ records: [1, 2], vectors: new Float32Array(5) }]
  expect(() => scanBlocks(module, blocks, question)).toThrow(RangeError)
  expect(segment.size).toBe(0)
})

test('reads the exact vectors of few rows, and none again if they are cached', () => {
  const rows = new Map(Array.from({ length: 20_000 }, (_, i) => [i, vectorOf(i * 977, 384)]))
  let reads = 0
  const segment = new Segment(module, 384, 'cosine', records => {
    reads += records.length
    return records.map(record => rows.get(record)!)
  })
  for (const [record, row] of rows) segment.append(record, row)
  segment.nearest(vectorOf(-5, 384), 10)
  expect(reads).toBeLessThan(500)
  segment.cachesExact = true
  const answer = segment.nearest(vectorOf(-5, 384), 10)
  reads = 0
  expect(segment.nearest(vectorOf(-5, 384), 10)).toEqual(answer)
  expect(reads).toBe(0)
})
