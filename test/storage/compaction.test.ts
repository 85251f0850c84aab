import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { statSync } from 'node:fs'
import { expect, onTestFinished, test, vi } from 'vitest'
import type { CollectionCompactionProgress, ContentStore } from '../../src/storage/content.ts'
import { openEmbeddedStore } from '../../src/storage/open.ts'
import { checkSqliteStore } from '../../src/storage/sqlite/check.ts'
import { CommitQueue } from '../../src/storage/sqlite/commit-queue.ts'
import { SqliteConnection } from '../../src/storage/sqlite/connection.ts'
import Database from '../../src/storage/sqlite/driver.ts'
import { readFileSpace } from '../../src/storage/sqlite/file-space.ts'
import { openConnection } from '../../src/storage/sqlite/open.ts'
import { IDLE_MS, SpaceRecovery } from '../../src/storage/sqlite/space-recovery.ts'
import { programPath } from '../harness/program.ts'
import { TestClock } from '../harness/runtime.ts'
import { all, createCollection, idsOf, key, recordWithText, upsert } from './content-data.ts'
import { scratchPath } from './scratch.ts'

const KILL_ROUNDS = Number(process.env.WB_TEST_KILLS ?? 5)
const never = new AbortController().signal

function problemsOf(path: string): string[] {
  return checkSqliteStore(path)!.checks.flatMap(({ check, count }) => (count > 0 ? [check] : []))
}

async function found(content: ContentStore, text: string): Promise<string[]> {
  const query = { text, limit: 10_000, visibility: all, statistics: 'collection' as const }
  return idsOf(content, await content.lexical!.search(key, query))
}

/** Fills a collection with documents, 50 records each, and deletes those with an odd number. */
async function fillAndDelete(content: ContentStore, documents: number): Promise<void> {
  for (let d = 0; d < documents; d++) {
    const records = Array.from({ length: 50 }, (_, n) =>
      recordWithText(`r${d}-${n}`, `apple document${d} ${`filler${n} `.repeat(60)}`, { documentId: `d${d}` }),
    )
    await content.write([upsert(...records)], [])
  }
  for (let d = 1; d < documents; d += 2)
    await content.write([{ op: 'deleteDocument', ...key, documentId: `d${d}` }], [])
}

test.each([false, true])(
  'a compaction makes the index and the file smaller, and changes no results (threads: %s)',
  async threads => {
    const path = scratchPath()
    const { content, close } = await openEmbeddedStore({ path, threads })
    onTestFinished(close)
    await content.write([createCollection()], [])
    await fillAndDelete(content, 14)
    const before = await found(content, 'apple')
    const steps: CollectionCompactionProgress[] = []
    const sizes = await content.compact!(key, { signal: never, onProgress: step => steps.push(step) })
    expect(await found(content, 'apple')).toEqual(before)
    // The background work may already have removed the deleted records from the index.
    expect(sizes.after.index!.bytes).toBeLessThanOrEqual(sizes.before.index!.bytes)
    expect(sizes.after.index!.segments).toBe(1)
    expect(sizes.after.file).toMatchObject({ freeBytes: 0, canShrink: true })
    expect(sizes.after.file!.bytes).toBeLessThan(sizes.before.file!.bytes)
    expect(statSync(path).size).toBe(sizes.after.file!.bytes)
    expect((await content.stats(key)).index).toMatchObject({ segments: 1, deletedShare: 0 })
    expect(steps.at(-1)).toMatchObject({ part: 'file' })
    for (const part of ['index', 'file'] as const) {
      const done = steps.filter(step => step.part === part).map(step => step.done)
      expect(done).toEqual([...done].sort((a, b) => a - b))
    }
    const [size] = await content.storedBytes([key])
    expect(size).toEqual((await content.stats(key)).bytes)
    expect(problemsOf(path)).toEqual([])
    const again = await content.compact!(key, { signal: never, onProgress() {} })
    expect(again).toEqual({ before: sizes.after, after: sizes.after })
  },
)

test('searches and writes run between the steps of a compaction', async () => {
  const path = scratchPath()
  const { content, close } = await openEmbeddedStore({ path, threads: true })
  onTestFinished(close)
  await content.write([createCollection()], [])
  await fillAndDelete(content, 10)
  let isRunning = true
  const compaction = content.compact!(key, { signal: never, onProgress() {} }).finally(() => {
    isRunning = false
  })
  let written = 0
  do {
    await content.write([upsert(recordWithText(`new${written}`, 'plum'))], [])
    written++
    expect(await found(content, 'plum')).toHaveLength(written)
    expect(await found(content, 'apple')).toHaveLength(250)
  } while (isRunning)
  await compaction
  expect(problemsOf(path)).toEqual([])
})

test('an aborted compaction ends with the reason, and a later one completes the work', async () => {
  const path = scratchPath()
  const { content, close } = await openEmbeddedStore({ path })
  onTestFinished(close)
  await content.write([createCollection()], [])
  await fillAndDelete(content, 10)
  const stop = new AbortController()
  const onProgress = () => stop.abort(new Error('stopped'))
  await expect(content.compact!(key, { signal: stop.signal, onProgress })).rejects.toThrow('stopped')
  expect(problemsOf(path)).toEqual([])
  await content.compact!(key, { signal: never, onProgress() {} })
  expect((await content.stats(key)).index).toMatchObject({ segments: 1, deletedShare: 0 })
  await expect(
    content.compact!({ ...key, name: 'missing' }, { signal: never, onProgress() {} }),
  ).rejects.toMatchObject({ code: 'collection_unavailable' })
})

test('the file of a store that cannot shrink keeps its size, and the result says so', async () => {
  const path = scratchPath()
  const database = new Database(path)
  database.exec('PRAGMA auto_vacuum = NONE; PRAGMA journal_mode = WAL; CREATE TABLE t (n); DROP TABLE t')
  database.close()
  const { content, close } = await openEmbeddedStore({ path })
  onTestFinished(close)
  await content.write([createCollection()], [])
  await fillAndDelete(content, 10)
  const { before, after } = await content.compact!(key, { signal: never, onProgress() {} })
  expect(after.file).toMatchObject({ canShrink: false })
  expect(after.file!.bytes).toBeGreaterThanOrEqual(before.file!.bytes)
  expect(after.file!.freeBytes).toBeGreaterThan(0)
})

test('free space is given back after a time without writes, also by other connections', async () => {
  const path = scratchPath()
  const [connection, other] = [await openConnection(path), await openConnection(path)]
  const clock = new TestClock()
  const recovery = new SpaceRecovery(connection, new CommitQueue(connection), clock)
  onTestFinished(async () => {
    await recovery.close()
    for (const each of [connection, other]) each.close()
  })
  const fillAndDrop = (bytes: number) => {
    other.database.exec(`CREATE TABLE filler AS SELECT zeroblob(${bytes}) AS data`)
    other.database.exec('DROP TABLE filler')
  }
  const free = () => readFileSpace(other).freeBytes
  /** Advances the time, and waits for work that this starts. */
  const pass = async (ms: number) => {
    clock.advance(ms)
    await new Promise(resolve => setTimeout(resolve, 20))
  }
  fillAndDrop(8_000_000)
  const freed = free()
  recovery.wake()
  await pass(2 * IDLE_MS)
  recovery.start()
  await pass(IDLE_MS)
  await pass(IDLE_MS - 1)
  recovery.wake()
  await pass(IDLE_MS - 1)
  fillAndDrop(100)
  await pass(1)
  expect(free()).toBe(freed)
  await pass(IDLE_MS)
  await vi.waitFor(() => expect(statSync(path).size).toBeLessThan(1_000_000), { timeout: 5_000 })
  expect(free()).toBe(0)
  fillAndDrop(2_000_000)
  recovery.wake()
  await pass(IDLE_MS)
  await pass(IDLE_MS)
  expect(free()).toBeGreaterThan(1_900_000)
})

test(`a store is intact after each of ${KILL_ROUNDS} kills during compactions`, {
  timeout: 300_000,
}, async () => {
  const path = scratchPath()
  const store = await openEmbeddedStore({ path })
  await store.content.write([createCollection()], [])
  await store.close()
  let last = -1
  for (let kill = 0; kill < KILL_ROUNDS; kill++) {
    const child = spawn(process.execPath, [programPath('store/compact'), path, String(last + 1)], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let output = ''
    child.stdout.on('data', (bytes: Buffer) => {
      output += bytes.toString()
    })
    await once(child.stdout, 'data')
    await new Promise(resolve => setTimeout(resolve, (kill * 53) % 211))
    child.kill('SIGKILL')
    const [, signal] = await once(child, 'close')
    expect(signal).toBe('SIGKILL')
    const acknowledged = Number(output.trimEnd().split('\n').at(-1))
    expect(problemsOf(path)).toEqual([])
    const { content, close } = await openEmbeddedStore({ path })
    const ids = await found(content, 'apple')
    const rounds = new Set(ids.map(id => Number(id.match(/\d+/)![0])))
    // The write of the round after the last acknowledged one may have been committed.
    last = Math.max(...rounds)
    expect([acknowledged, acknowledged + 1]).toContain(last)
    expect([...rounds].sort((a, b) => a - b)).toEqual([last - 2, last - 1, last].filter(round => round >= 0))
    expect(ids).toHaveLength(60 * rounds.size)
    await close()
  }
  const connection = new SqliteConnection(path)
  expect(connection.database.pragma('integrity_check', { simple: true })).toBe('ok')
  connection.close()
})
