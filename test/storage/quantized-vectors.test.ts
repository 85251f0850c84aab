import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { Metric, SpaceKey } from '../../src/storage/content.ts'
import { AllowedRecords } from '../../src/storage/sqlite/allowed-records.ts'
import { checkSqliteStore } from '../../src/storage/sqlite/check.ts'
import type { SqliteConnection } from '../../src/storage/sqlite/connection.ts'
import { VectorIndex } from '../../src/storage/sqlite/vector-index.ts'
import { hasQuantizationWork } from '../../src/storage/sqlite/vector-quantization.ts'
import { programPath } from '../harness/program.ts'
import { all, createCollection, key, record, upsert } from './content-data.ts'
import { scratchPath } from './scratch.ts'
import { createVectors, dimension, openVectorStore, vectorChanges, vectorOf } from './vector-store.ts'

const metrics: Metric[] = ['cosine', 'dot', 'euclidean']

async function openStore(path = scratchPath()) {
  const store = await openVectorStore(path)
  onTestFinished(() => store.connection.close())
  return store
}

/** The bytes of a store with 3,480 vectors in three full blocks, and others after them, for each metric. */
const quantizedBytes = new Map<Metric, Buffer>()

async function quantizedStore(metric: Metric = 'cosine') {
  const path = scratchPath()
  const bytes = quantizedBytes.get(metric)
  if (bytes) {
    writeFileSync(path, bytes)
    return openStore(path)
  }
  const store = await openStore(path)
  await store.write([createVectors(metric)])
  for (let n = 1; n <= 6; n++) await store.write(vectorChanges(n))
  await store.quantize()
  store.connection.truncateLog()
  quantizedBytes.set(metric, readFileSync(path))
  return store
}

const blocksOf = (connection: SqliteConnection) =>
  connection
    .prepare<{ table_name: string; first: number; through: number; size: number }>(
      'SELECT table_name, first, through, size FROM quantized_vectors ORDER BY table_name, through',
    )
    .all()

/** Returns an index that has loaded nothing. */
const newIndex = (connection: SqliteConnection, bytesMax?: number) =>
  new VectorIndex(connection, new AllowedRecords(connection), { bytesMax })

/** Requires that searches return what a scan of all exact vectors returns, to the last bit. */
function expectExact(
  connection: SqliteConnection,
  index = newIndex(connection),
  space: SpaceKey = key,
): void {
  const scan = newIndex(connection, 1)
  for (const [seed, limit] of [
    [3, 10],
    [-5, 300],
  ] as const) {
    const query = { vector: vectorOf(seed), limit, visibility: all }
    expect(index.nearest(space, query)).toEqual(scan.nearest(space, query))
  }
}

/** Returns the findings of the check of the store. */
function findings(path: string): Record<string, readonly string[]> {
  const wrong = checkSqliteStore(path)!.checks.filter(({ count }) => count > 0)
  return Object.fromEntries(wrong.map(({ check, examples }) => [check, examples]))
}

const damage = 'damage in quantized vectors'

describe.each(metrics)('%s', metric => {
  test('searches with stored quantized vectors are exact after other changes', async () => {
    const store = await quantizedStore(metric)
    expect(blocksOf(store.connection).map(({ size }) => size)).toEqual([1024, 1024, 1024])
    const resident = newIndex(store.connection)
    expectExact(store.connection, resident)
    for (let n = 7; n <= 10; n++) {
      await store.write(vectorChanges(n))
      if (n % 2 === 0) await store.step()
      expectExact(store.connection)
      expectExact(store.connection, resident)
    }
    expect(findings(store.path)).toEqual({})
  })
})

test('a first search reads no exact vectors of blocks except those of candidates', async () => {
  const { connection } = await quantizedStore()
  const [hit] = newIndex(connection, 1).nearest(key, { vector: vectorOf(3), limit: 1, visibility: all })
  const [first] = blocksOf(connection)
  const query = { vector: vectorOf(3), limit: 1, visibility: all }
  connection
    .prepare('UPDATE vec_1_0 SET data = zeroblob(1) WHERE record <= ? AND record % 50 = ? AND record <> ?')
    .run(first!.through, (hit!.record + 1) % 50, hit!.record)
  expect(newIndex(connection).nearest(key, query)).toEqual([hit])
  connection.prepare('DELETE FROM quantized_vectors').run()
  expect(() => newIndex(connection).nearest(key, query)).toThrow('damaged')
})

test('vectors are quantized when a block is full, and again when most of them were deleted', async () => {
  const store = await quantizedStore()
  const before = blocksOf(store.connection)
  expect(hasQuantizationWork(store.connection)).toBe(false)
  await store.write([
    upsert(...Array.from({ length: 300 }, (_, n) => record(`new${n}`, { vector: vectorOf(n) }))),
  ])
  await store.quantize()
  expect(blocksOf(store.connection)).toEqual(before)
  const rows = store.connection.prepare<{ id: string }>('SELECT id FROM record LIMIT 2300').all()
  await store.write(rows.map(({ id }) => ({ op: 'deleteRecord', ...key, id })))
  expectExact(store.connection)
  expect(hasQuantizationWork(store.connection)).toBe(true)
  await store.quantize()
  expect(blocksOf(store.connection).map(({ size }) => size)).toEqual([1024])
  expect(blocksOf(store.connection)[0]!.first).toBeGreaterThan(before[0]!.first)
  expectExact(store.connection)
  expect(findings(store.path)).toEqual({})
})

test('two processes that quantize at the same time write each block once', async () => {
  const one = await openStore()
  await one.write([createVectors()])
  for (let n = 1; n <= 6; n++) await one.write(vectorChanges(n))
  const other = await openStore(one.path)
  await Promise.all([one.quantize(), other.quantize()])
  expect(blocksOf(one.connection)).toHaveLength(3)
  expect(findings(one.path)).toEqual({})
})

test('the quantized vectors of a dropped collection are deleted', async () => {
  const store = await quantizedStore()
  await store.write([{ op: 'dropCollection', ...key }])
  expect(blocksOf(store.connection)).toEqual([])
})

test('named spaces are exact with vectors of some records only', async () => {
  const { operations, connection, ...store } = await quantizedStore()
  const sentences = { ...key, space: 'sentences' }
  await store.write([{ op: 'createSpace', ...sentences, dimension, metric: 'euclidean' }])
  await operations.lease({ key: sentences, owner: 'me', now: 0, until: 1 })
  const stage = async (generation: number) => {
    const records = connection.prepare<{ record: number }>('SELECT record FROM record ORDER BY record').all()
    const vectors = records.map(({ record: number }) => ({ record: number, vector: vectorOf(number * 7) }))
    const lease = { owner: 'me', generation }
    expect(await operations.stage({ key: sentences, lease, vectors })).toBe(true)
    return lease
  }
  const lease = await stage(1)
  await operations.swap({ key: sentences, lease, fitted: undefined })
  await store.quantize()
  expect(blocksOf(connection).map(({ table_name }) => table_name)).toContain('vec_2_1')
  const resident = newIndex(connection)
  for (let n = 7; n <= 9; n++) {
    await store.write(vectorChanges(n))
    if (n === 8) await stage(1)
    await store.quantize()
    expectExact(connection, newIndex(connection), sentences)
    expectExact(connection, resident, sentences)
  }
  expect(findings(store.path)).toEqual({})
  await store.write([{ op: 'dropSpace', ...sentences }])
  expect(blocksOf(connection).map(({ table_name }) => table_name)).not.toContain('vec_2_1')
})

test('the quantized vectors of an earlier generation are deleted', async () => {
  const store = await quantizedStore()
  const { operations } = store
  const lease = { owner: 'me', generation: 1 }
  await operations.lease({ key, owner: 'me', now: 0, until: 1 })
  const records = store.connection.prepare<{ record: number }>('SELECT record FROM record').all()
  const vectors = records.map(({ record: number }) => ({ record: number, vector: vectorOf(-number) }))
  await operations.stage({ key, lease, vectors })
  await store.quantize()
  expect(blocksOf(store.connection).map(({ table_name }) => table_name)).toEqual(Array(3).fill('vec_1_0'))
  const model = { terms: '[]', weights: new Uint8Array(0) }
  await operations.swap({
    key,
    lease,
    fitted: { model, records: records.length, through: records.at(-1)!.record },
  })
  expect(blocksOf(store.connection)).toEqual([])
  expectExact(store.connection)
  await store.quantize()
  expect(blocksOf(store.connection).map(({ table_name }) => table_name)).toEqual(Array(3).fill('vec_1_1'))
  expectExact(store.connection)
})

const second = 'through = (SELECT through FROM quantized_vectors ORDER BY through LIMIT 1 OFFSET 1)'

test.each([
  ['integers too few', `UPDATE quantized_vectors SET levels = zeroblob(16) WHERE ${second}`],
  ['numbers too many', `UPDATE quantized_vectors SET facts = zeroblob(1024 * 40 + 8) WHERE ${second}`],
  ['records in a wrong order', `UPDATE quantized_vectors SET facts = zeroblob(1024 * 40) WHERE ${second}`],
  ['another first record', `UPDATE quantized_vectors SET first = first + 1 WHERE ${second}`],
  ['a block too few', `DELETE FROM quantized_vectors WHERE ${second}`],
])('searches ignore blocks with %s, and the check reports them', async (_, sql) => {
  const store = await quantizedStore()
  const examples = blocksOf(store.connection).map(({ through }) => `quantized_vectors vec_1_0/${through}`)
  store.connection.database.exec(sql)
  expectExact(store.connection)
  expect(examples).toEqual(expect.arrayContaining([...findings(store.path)[damage]!]))
})

test.each([
  ['other integers', `UPDATE quantized_vectors SET levels = zeroblob(1024 * 16) WHERE ${second}`],
  ['no collection', `UPDATE quantized_vectors SET table_name = 'vec_2_0' WHERE ${second}`],
])('the check reports quantized vectors with %s', async (_, sql) => {
  const store = await quantizedStore()
  store.connection.database.exec(sql)
  expect(findings(store.path)).toHaveProperty([damage])
})

test('blocks in another format are ignored, and written again', async () => {
  const store = await quantizedStore()
  const before = blocksOf(store.connection)
  store.connection.database.exec('UPDATE quantized_vectors SET format = 0, levels = zeroblob(1024 * 16)')
  expectExact(store.connection)
  expect(findings(store.path)).toEqual({})
  await store.quantize()
  expect(blocksOf(store.connection)).toEqual(before)
  expectExact(store.connection)
  expect(findings(store.path)).toEqual({})
})

test('a vector that cannot be read does not stop the quantization of other collections', async () => {
  const store = await openStore()
  const other = { workspaceId: 'w', name: 'other' }
  await store.write([createVectors(), { ...createCollection({ dimension, lexical: false }), ...other }])
  for (let n = 1; n <= 2; n++)
    await store.write(vectorChanges(n).flatMap(change => [change, { ...change, ...other }]))
  store.connection.database.exec('UPDATE vec_1_0 SET data = zeroblob(1) WHERE record % 100 = 0')
  await store.quantize()
  expect(blocksOf(store.connection).map(({ table_name }) => table_name)).toEqual(['vec_2_0'])
})

test('quantized vectors are exact after kill -9 of a process that writes them', {
  timeout: 60_000,
}, async () => {
  const store = await openStore()
  await store.write([createVectors()])
  for (let round = 1; round <= 4; round++) {
    const args = [programPath('quantized/writer'), store.path, String(round)]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    await once(child.stdout, 'data')
    await new Promise(resolve => setTimeout(resolve, round * 13))
    child.kill('SIGKILL')
    await once(child, 'close')
    expect(findings(store.path)).toEqual({})
    expectExact(store.connection)
  }
})
