import { expect, onTestFinished, test, vi } from 'vitest'
import { matchesFilter } from '../../src/storage/filter.ts'
import { openEmbeddedStore } from '../../src/storage/open.ts'
import { Segment } from '../../src/storage/scan/segment.ts'
import { AllowedRecords } from '../../src/storage/sqlite/allowed-records.ts'
import { findCollection } from '../../src/storage/sqlite/collections.ts'
import { findLogDamage } from '../../src/storage/sqlite/log-damage.ts'
import { openConnection } from '../../src/storage/sqlite/open.ts'
import { createReadOperations } from '../../src/storage/sqlite/operations.ts'
import { VectorIndex } from '../../src/storage/sqlite/vector-index.ts'
import type { OpenStore } from '../../src/storage/storage-driver.ts'
import { tables } from '../../src/storage/tables.ts'
import { all, createCollection, idsOf, key, record, similarity, upsert } from './content-data.ts'
import { scratchPath } from './scratch.ts'
import { startWriter } from './writers.ts'

async function opened(path: string, threads = false): Promise<OpenStore> {
  const store = await openEmbeddedStore({ path, threads })
  onTestFinished(() => store.close())
  return store
}

const shared = { workspaceId: 'w', name: 'shared' }

test('four processes open a new data directory concurrently and write to it, while searches see whole commits in order', {
  timeout: 120_000,
}, async () => {
  const path = scratchPath()
  const count = 60
  const writers = ['a', 'b', 'c', 'd'].map((name, n) =>
    startWriter(path, name, count, n === 3 ? 'threads' : ''),
  )
  const store = await opened(path)
  const searching = [store, await opened(path, true)]
  const query = { vector: Float32Array.of(1, 1, 1, 1), limit: 1_000, visibility: all }
  const words = { text: 'wrote', limit: 1_000, visibility: all, statistics: 'collection' as const }
  const counts = new Set<number>()
  let running = true
  const ended = Promise.all(writers.map(({ ended }) => ended)).finally(() => {
    running = false
  })
  // Concurrent searches in this process update its resident vectors and postings again and again.
  for (let most = 0; running; ) {
    for (const { content } of searching) {
      if (!(await content.collection(shared))) continue
      for (const hits of [
        await content.nearest(shared, query),
        await content.lexical!.search(shared, words),
      ]) {
        // Each commit of a writer adds the three records of a document.
        expect(hits.length % 3).toBe(0)
        expect(hits.length).toBeGreaterThanOrEqual(most)
        most = hits.length
        counts.add(most)
      }
    }
    await new Promise(resolve => setTimeout(resolve, 5))
  }
  expect(await ended, writers.map(({ errors }) => errors()).join('\n')).toEqual([0, 0, 0, 0])
  expect(writers.map(({ acknowledged }) => acknowledged.length)).toEqual([count, count, count, count])
  expect(await store.rows.count(tables.documents, 'byKnowledgeBase', ['w', 'k'])).toBe(4 * count)
  expect(await store.content.collection(shared)).toMatchObject({ records: 12 * count })
  expect(await store.content.nearest(shared, query)).toHaveLength(12 * count)
  expect(counts.size).toBeGreaterThan(3)
  expect(await store.content.lexical!.search(shared, { ...words, text: '"document7"' })).toHaveLength(4 * 3)
})

test('a log that other processes write to is not reported as damaged', { timeout: 120_000 }, async () => {
  const path = scratchPath()
  const writers = ['a', 'b', 'c'].map(name => startWriter(path, name, 150))
  let running = true
  const ended = Promise.all(writers.map(({ ended }) => ended)).finally(() => {
    running = false
  })
  while (running) {
    expect(findLogDamage(path)).toBeUndefined()
    await new Promise(setImmediate)
  }
  expect(await ended, writers.map(({ errors }) => errors()).join('\n')).toEqual([0, 0, 0])
})

test.each([
  ['on the spot', false],
  ['with threads', true],
])(
  'resident vectors are updated with changes of another connection before a search, %s',
  async (_, threads) => {
    const path = scratchPath()
    const [mine, other] = [await opened(path), await opened(path, threads)]
    const near = async ({ content }: OpenStore, filtered = false) => {
      const filter = filtered ? ({ kind: 'in', key: 'odd', values: [true] } as const) : undefined
      const hits = await content.nearest(key, {
        vector: Float32Array.of(1, 0),
        limit: 99,
        visibility: all,
        filter,
      })
      return (await idsOf(content, hits)).sort()
    }
    const put = (...numbers: number[]) =>
      upsert(
        ...numbers.map(n =>
          record(`r${n}`, { vector: Float32Array.of(1, n), payload: { odd: n % 2 === 1 }, documentId: 'd' }),
        ),
      )
    const steps = [
      [createCollection()],
      [put(1, 2, 3)],
      [put(4), { op: 'deleteRecord', ...key, id: 'r1' } as const],
      [put(2, 5)],
      [{ op: 'deleteDocument', ...key, documentId: 'd' } as const, put(6)],
      [{ op: 'dropCollection', ...key } as const, createCollection(), put(7)],
    ]
    for (const changes of steps) {
      expect(await mine.content.write(changes, [])).toEqual({ ok: true })
      expect(await near(other)).toEqual(await near(mine))
      expect(await near(other, true)).toEqual(await near(mine, true))
    }
    expect(await near(other)).toEqual(['r7'])
  },
)

test('a search uses a new space that another process activated', async () => {
  const path = scratchPath()
  const [mine, other] = [await opened(path), await opened(path)]
  await mine.content.write([createCollection(), upsert(record('a'), record('b'))], [])
  const vector = Float32Array.of(0, 1)
  const score = async () =>
    (await other.content.nearest(key, { vector, limit: 1, visibility: all }))[0]!.score
  expect(await score()).toBe(0)
  const fitted = mine.content.fitted!
  const left = await fitted.unstaged(key, 1, 9)
  const fit = { generation: 1, owner: 'mine' }
  await fitted.lease(key, fit.owner, 60_000)
  await fitted.stage(
    key,
    fit,
    left.map(({ record: number }) => ({ record: number, vector })),
  )
  expect(await score()).toBe(0)
  await fitted.swap(key, fit, { model: { terms: '', weights: Uint8Array.of() }, records: 2, through: 2 })
  expect(await score()).toBe(1)
})

test('an update reads only the changes, not the whole collection', async () => {
  const { content } = await opened(scratchPath())
  const query = { vector: Float32Array.of(1, 0), limit: 1, visibility: all }
  await content.write(
    [createCollection(), upsert(...Array.from({ length: 200 }, (_, n) => record(`r${n}`)))],
    [],
  )
  const append = vi.spyOn(Segment.prototype, 'append')
  const remove = vi.spyOn(Segment.prototype, 'remove')
  await content.nearest(key, query)
  expect(append).toHaveBeenCalledTimes(200)
  await content.write([upsert(record('r0'), record('new')), { op: 'deleteRecord', ...key, id: 'r1' }], [])
  await content.nearest(key, query)
  await content.nearest(key, query)
  expect(append).toHaveBeenCalledTimes(202)
  expect(remove).toHaveBeenCalledTimes(2)
  vi.restoreAllMocks()
})

test('an update of a space that lacks vectors reads only its new vectors', async () => {
  const { content } = await opened(scratchPath())
  const space = { ...key, space: 'other' }
  const lease = { generation: 1, owner: 'mine' }
  const stageAll = async () => {
    const left = await content.spaces!.unstaged(space, 1, 99)
    const vectors = left.map(({ record: number }) => ({ record: number, vector: Float32Array.of(1, 0) }))
    await content.spaces!.stage(space, lease, vectors)
  }
  const put = (from: number) => upsert(...Array.from({ length: 50 }, (_, n) => record(`r${from + n}`)))
  const nearest = () => content.nearest(space, { vector: Float32Array.of(1, 0), limit: 999, visibility: all })
  const createSpace = { op: 'createSpace', ...space, dimension: 2, metric: 'dot' } as const
  await content.write([createCollection({ lexical: false }), createSpace, put(0)], [])
  await content.spaces!.lease(space, lease.owner, 60_000)
  await stageAll()
  await content.spaces!.swap(space, lease)
  expect(await nearest()).toHaveLength(50)
  const append = vi.spyOn(Segment.prototype, 'append')
  onTestFinished(() => append.mockRestore())
  await content.write([put(100), { op: 'deleteRecord', ...key, id: 'r100' }, put(10)], [])
  expect(await nearest()).toHaveLength(10)
  expect(append).not.toHaveBeenCalled()
  await stageAll()
  expect(await nearest()).toHaveLength(109)
  expect(append).toHaveBeenCalledTimes(99)
})

test('a segment that misses more deletions than are recorded is loaded again', async () => {
  const path = scratchPath()
  const [mine, other] = [await opened(path), await openConnection(path)]
  onTestFinished(() => other.close())
  const { nearest } = createReadOperations(other)
  const query = { vector: Float32Array.of(1, 0), limit: 10, visibility: all }
  const many = (from: number) => upsert(...Array.from({ length: 3_000 }, (_, n) => record(`r${from + n}`)))
  await mine.content.write([createCollection({ lexical: false }), many(0), upsert(record('stays'))], [])
  expect(await nearest({ key, query })).toHaveLength(10)
  for (let round = 0; round < 7; round++) await mine.content.write([many(0)], [])
  const { loggedDeletions } = findCollection(other, key)!
  expect(loggedDeletions).toBeLessThanOrEqual(20_000)
  expect(other.prepare('SELECT count(*) AS rows FROM record_gone').get()).toEqual({ rows: loggedDeletions })
  await mine.content.write([upsert(record('best', { vector: Float32Array.of(2, 0) }))], [])
  const [hits, exact] = [await nearest({ key, query }), await mine.content.nearest(key, query)]
  expect(hits).toEqual(exact)
  expect(await mine.content.collection(key)).toMatchObject({ records: 3_002 })
})

test('a collection above the memory limit is read from disk, with the same result', async () => {
  const connection = await openConnection(scratchPath())
  onTestFinished(() => connection.close())
  const store = await opened(connection.database.name)
  const records = Array.from({ length: 700 }, (_, n) =>
    record(`r${n}`, { vector: Float32Array.of(Math.sin(n), Math.cos(n), n / 700), payload: { n: n % 7 } }),
  )
  await store.content.write([createCollection({ dimension: 3, lexical: false }), upsert(...records)], [])
  const filter = { kind: 'range', key: 'n', operator: '<', bound: 3 } as const
  const vector = Float32Array.of(0.3, -0.2, 0.9)
  const small = new VectorIndex(connection, new AllowedRecords(connection), { bytesMax: 1_000 })
  for (const query of [
    { vector, limit: 20, visibility: all, filter },
    { vector, limit: 1_000, visibility: all },
  ]) {
    const hits = small.nearest(key, query)
    expect(hits).toEqual(await store.content.nearest(key, query))
    const exact = records
      .filter(({ payload }) => matchesFilter(query.filter, payload))
      .map(one => similarity('cosine', vector, one.vector))
      .sort((a, b) => b - a)
      .slice(0, query.limit)
    expect(hits.map(({ score }) => score)).toEqual(exact.map(score => expect.closeTo(score, 9)))
  }
})

test('searches that wait together have the results of each, and fail on their own', async () => {
  const connection = await openConnection(scratchPath())
  onTestFinished(() => connection.close())
  const store = await opened(connection.database.name)
  const other = { workspaceId: 'w', name: 'other' }
  const records = Array.from({ length: 40 }, (_, n) =>
    record(`r${n}`, { vector: Float32Array.of(Math.sin(n), Math.cos(n)), payload: { n: n % 7 } }),
  )
  const create = createCollection({ lexical: false })
  await store.content.write([create, { ...create, ...other }, upsert(...records)], [])
  const { nearest } = createReadOperations(connection)
  const filter = { kind: 'range', key: 'n', operator: '<', bound: 3 } as const
  const queries = Array.from({ length: 20 }, (_, n) => ({
    vector: Float32Array.of(Math.sin(n), 0.5),
    limit: 1 + (n % 9),
    visibility: all,
    ...(n % 3 === 0 && { filter }),
  }))
  const each = []
  for (const query of queries) each.push(await nearest({ key, query }))
  const long = { ...queries[0]!, vector: Float32Array.of(1, 2, 3) }
  const [together, wrong, empty] = await Promise.all([
    Promise.all(queries.map(query => nearest({ key, query }))),
    nearest({ key, query: long }).catch(error => error.code),
    nearest({ key: other, query: queries[0]! }),
  ])
  expect(together).toEqual(each)
  expect(wrong).toBe('dimension_mismatch')
  expect(empty).toEqual([])
})

test('least recently used collections are removed from memory', async () => {
  const connection = await openConnection(scratchPath())
  onTestFinished(() => connection.close())
  const store = await opened(connection.database.name)
  const keys = ['a', 'b', 'c'].map(name => ({ workspaceId: 'w', name }))
  for (const each of keys)
    await store.content.write(
      [
        { ...createCollection({ lexical: false }), ...each },
        { ...upsert(record('r')), ...each },
      ],
      [],
    )
  const vectors = new VectorIndex(connection, new AllowedRecords(connection), { bytesMax: 300_000 })
  const load = (of: (typeof keys)[number]) =>
    vectors.nearest(of, { vector: Float32Array.of(1, 0), limit: 1, visibility: all })
  for (const each of [...keys, ...keys.toReversed()]) expect(load(each)).toHaveLength(1)
  expect(vectors.residentBytes).toBeLessThanOrEqual(300_000)
  expect(vectors.residentBytes).toBeGreaterThan(0)
})
