import { once } from 'node:events'
import { expect, test } from 'vitest'
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
/** Time for a writer after its first acknowledgement; a longer test is in `bench`. */
const roundsMs = [0, 40, 120]

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

test.each(['', 'threads'])(
  'acknowledged writes survive repeated kill -9 of a writer (%s)',
  { timeout: 120_000 },
  async mode => {
    const path = scratchPath()
    const acknowledged: string[] = []
    for (const [round, ms] of roundsMs.entries()) {
      const writer = startWriter(path, `round${round}`, 1_000_000, mode)
      await once(writer.child.stdout!, 'data')
      await new Promise(resolve => setTimeout(resolve, ms))
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
      const chunks = await content.listing!.listByDocument(shared, { documentId, limit: 9, visibility: all })
      expect(chunks.map(({ chunkIndex }) => chunkIndex)).toEqual([0, 1, 2])
    }
    const after = startWriter(path, 'after', 5)
    expect(await after.ended, after.errors()).toBe(0)
    await close()
  },
)

test('a vector space is complete and of a single generation after repeated kill -9', {
  timeout: 120_000,
}, async () => {
  const path = scratchPath()
  for (const [round, ms] of roundsMs.entries()) {
    const writer = startProgram('store/spaces', path, `round${round}`)
    await once(writer.child.stdout!, 'data')
    await new Promise(resolve => setTimeout(resolve, ms))
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
