import { once } from 'node:events'
import { expect, test } from 'vitest'
import type { ContentStore } from '../../src/storage/content.ts'
import { checkStore, openEmbeddedStore } from '../../src/storage/open.ts'
import { SqliteConnection } from '../../src/storage/sqlite/connection.ts'
import { findLogDamage } from '../../src/storage/sqlite/log-damage.ts'
import { findPostingFaults, indexedRecords } from '../../src/storage/sqlite/postings/check-postings.ts'
import { listPostingIndexes } from '../../src/storage/sqlite/postings/index-rows.ts'
import { tables } from '../../src/storage/tables.ts'
import { all } from './content-data.ts'
import { scratchPath } from './scratch.ts'
import { startProgram, startWriter } from './writers.ts'

const shared = { workspaceId: 'w', name: 'shared' }
const kills = Number(process.env.WB_TEST_KILLS ?? 3)
/** Limits the time of the checks, which read the whole store after each kill. */
const KILLS_PER_STORE = 20

/** Returns the milliseconds between the first acknowledgement and the kill. */
const pauseOf = (round: number) => (round * 59) % 121

/** Checks that all tables are consistent. */
function requireSound(path: string): void {
  const connection = new SqliteConnection(path)
  const count = (sql: string) =>
    connection.prepare<{ n: number }>(`SELECT count(*) AS n FROM ${sql}`).get()!.n
  expect(connection.prepare('PRAGMA integrity_check').all()).toEqual([{ integrity_check: 'ok' }])
  const records = count('record')
  expect(connection.prepare('SELECT records FROM collection').get()).toEqual({ records })
  expect(count('vec_1_0 v JOIN record r ON r.record = v.record')).toBe(records)
  expect(count('vec_1_0')).toBe(records)
  const indexed = listPostingIndexes(connection, 1).flatMap(({ id }) => [...indexedRecords(connection, id)])
  expect(findPostingFaults(connection)).toEqual([])
  expect(indexed).toEqual(
    connection
      .prepare<{ record: number }>('SELECT record FROM record ORDER BY record')
      .all()
      .map(({ record }) => record),
  )
  expect(count('documents')).toBe(records / 3)
  connection.close()
}

/** Requires that searches find what they find in a new store with the same records. */
async function requireSearchable(content: ContentStore): Promise<void> {
  const rebuilt = await openEmbeddedStore({ path: ':memory:' })
  const vector = Float32Array.of(1, 2, 1, 1)
  const every = { vector, limit: 1_000_000, visibility: all }
  const numbers = (await content.nearest(shared, every)).map(({ record }) => record).sort((a, b) => a - b)
  const records = await content.read(shared, numbers, { vectors: true, visibility: all })
  const collection = { dimension: 4, metric: 'cosine', lexical: true, language: null, fitted: true } as const
  const upserted = records.map(record => ({ ...record, title: null, vector: record.vector! }))
  await rebuilt.content.write(
    [
      { op: 'createCollection', ...shared, ...collection },
      { op: 'upsert', ...shared, generation: 0, records: upserted },
    ],
    [],
  )
  const search = async (store: ContentStore, words: string) => {
    const text = { text: words, limit: 100, visibility: all, statistics: 'collection' as const }
    const ranked = [
      await store.lexical!.search(shared, text),
      await store.nearest(shared, { vector, limit: 100, visibility: all }),
    ].flat()
    const views = await store.read(
      shared,
      ranked.map(({ record }) => record),
      { vectors: false, visibility: all },
    )
    return views.map(({ id }, at) => ({ id, score: ranked[at]!.score }))
  }
  for (const words of ['wrote document1', 'writer document12 document7'])
    expect(await search(content, words)).toEqual(await search(rebuilt.content, words))
  await rebuilt.close()
}

test.each(['', 'threads'])(
  `acknowledged writes survive ${kills} kills of a writer (%s)`,
  { timeout: 60_000 + 15_000 * kills },
  async mode => {
    for (let killed = 0; killed < kills; ) {
      const path = scratchPath()
      const acknowledged: string[] = []
      const last = Math.min(kills, killed + KILLS_PER_STORE)
      for (; killed < last; killed++) {
        const writer = startWriter(path, `round${killed}`, 1_000_000, mode)
        await once(writer.child.stdout!, 'data')
        await new Promise(resolve => setTimeout(resolve, pauseOf(killed)))
        writer.child.kill('SIGKILL')
        expect(await writer.ended, writer.errors()).toBe('SIGKILL')
        expect(writer.acknowledged.length).toBeGreaterThan(0)
        acknowledged.push(...writer.acknowledged)
        expect(findLogDamage(path)).toBeUndefined()
        requireSound(path)
      }
      const { rows, content, close } = await openEmbeddedStore({ path })
      for (const documentId of acknowledged) {
        expect(await rows.get(tables.documents, ['w', 'k', documentId]), documentId).toBeDefined()
        const chunks = await content.listing!.listByDocument(shared, {
          documentId,
          limit: 9,
          visibility: all,
        })
        expect(chunks.map(({ chunkIndex }) => chunkIndex)).toEqual([0, 1, 2])
      }
      await requireSearchable(content)
      const after = startWriter(path, 'after', 5)
      expect(await after.ended, after.errors()).toBe(0)
      await close()
    }
  },
)

test(`a vector space is complete and of a single generation after each of ${kills} kills`, {
  timeout: 60_000 + 15_000 * kills,
}, async () => {
  const path = scratchPath()
  for (let round = 0; round < kills; round++) {
    const writer = startProgram('store/spaces', path, `round${round}`)
    await once(writer.child.stdout!, 'data')
    await new Promise(resolve => setTimeout(resolve, pauseOf(round)))
    writer.child.kill('SIGKILL')
    expect(await writer.ended, writer.errors()).toBe('SIGKILL')
    const checked = await checkStore({ driver: 'sqlite', path })
    expect(checked!.checks.filter(({ count }) => count > 0)).toEqual([])
    const { content, close } = await openEmbeddedStore({ path })
    const space = { workspaceId: 'w', name: 'c', space: 'sentences' }
    const { generation, records } = (await content.collection(space))!
    expect(generation).toBeGreaterThanOrEqual(Number(writer.acknowledged.at(-1)))
    const hits = await content.nearest(space, {
      vector: Float32Array.of(1, 0),
      limit: 9_999,
      visibility: all,
    })
    expect(hits.length).toBeLessThanOrEqual(records)
    expect(new Set(hits.map(({ score }) => score))).toEqual(new Set([generation]))
    await close()
  }
})

test('closing waits for pending writes', async () => {
  for (const threads of [false, true]) {
    const path = scratchPath()
    const store = await openEmbeddedStore({ path, threads })
    const writes = Array.from({ length: 50 }, (_, n) =>
      store.rows.atomic([{ op: 'insert', table: tables.settings, row: { name: `s${n}`, value: '' } }]),
    )
    await store.close()
    expect(await Promise.all(writes)).toHaveLength(50)
    const again = await openEmbeddedStore({ path })
    expect(await again.rows.get(tables.settings, ['s49'])).toBeDefined()
    await again.close()
  }
})
