import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fc from 'fast-check'
import { expect, onTestFinished, test, vi } from 'vitest'
import { Analyzers } from '../../src/base/analysis/analyzers.ts'
import type { ContentStore } from '../../src/storage/content.ts'
import { openEmbeddedStore } from '../../src/storage/open.ts'
import { checkSqliteStore } from '../../src/storage/sqlite/check.ts'
import { CommitQueue } from '../../src/storage/sqlite/commit-queue.ts'
import { SqliteConnection } from '../../src/storage/sqlite/connection.ts'
import { ContentChanges } from '../../src/storage/sqlite/content-changes.ts'
import { createReadOperations, createWriter } from '../../src/storage/sqlite/operations.ts'
import { PostingBackfill } from '../../src/storage/sqlite/posting-backfill.ts'
import { PostingChanges } from '../../src/storage/sqlite/posting-changes.ts'
import { programPath } from '../harness/program.ts'
import { all, createCollection, idsOf, key, recordWithText, upsert } from './content-data.ts'
import { revertToFullText } from './full-text-store.ts'
import { scratchPath } from './scratch.ts'

const KILL_ROUNDS = Number(process.env.WB_TEST_KILLS ?? 20)

/** Problems that a check of the store finds. */
function problemsOf(path: string): string[] {
  return checkSqliteStore(path)!.checks.flatMap(({ check, count }) => (count > 0 ? [check] : []))
}

/** Returns a different word for each number. */
function wordOf(n: number): string {
  return `${String(n).replace(/\d/g, digit => 'abcdefghij'[Number(digit)]!)}q`
}

/** Creates a store of an earlier schema with records, each with a different word. */
async function fullTextStore(records: number, language: string | null = null): Promise<string> {
  const path = scratchPath()
  const { content, close } = await openEmbeddedStore({ path })
  const texts = Array.from({ length: records }, (_, n) => recordWithText(`r${n}`, `apple ${wordOf(n)}`))
  await content.write([createCollection({ language }), upsert(...texts)], [])
  await close()
  revertToFullText(path)
  return path
}

async function found(content: ContentStore, text: string): Promise<string[]> {
  const query = { text, limit: 10_000, visibility: all, statistics: 'collection' as const }
  return idsOf(content, await content.lexical!.search(key, query))
}

/** Opens a store whose background work is done step by step. */
function openStepwise(path: string) {
  const connection = new SqliteConnection(path)
  onTestFinished(() => connection.close())
  const analyzers = new Analyzers()
  const changes = new PostingChanges(connection, analyzers)
  const queue = new CommitQueue(connection, [changes])
  const { operations } = createWriter(connection)
  return {
    connection,
    write: operations.write,
    search: createReadOperations(connection).lexical,
    backfill: new PostingBackfill(connection, queue, changes, analyzers),
    queue,
    contentChanges: new ContentChanges(connection, changes),
  }
}

test.each([false, true])(
  'a store of an earlier schema is searched before, during and after its migration (threads: %s)',
  async threads => {
    const path = await fullTextStore(700)
    const { content, close } = await openEmbeddedStore({ path, threads })
    onTestFinished(close)
    const state = new SqliteConnection(path)
    onTestFinished(() => state.close())
    const isComplete = () => state.prepare('SELECT 1 FROM posting_index WHERE active = 1').get() !== undefined
    do {
      await new Promise(setImmediate)
      expect((await found(content, 'apples')).length).toBe(700)
      expect(await found(content, wordOf(699))).toEqual(['r699'])
    } while (!isComplete())
    expect((await found(content, 'apples')).length).toBe(700)
    expect(await found(content, wordOf(699))).toEqual(['r699'])
    expect(state.prepare(`SELECT name FROM sqlite_schema WHERE name GLOB 'fts_*'`).all()).toEqual([])
    expect(problemsOf(path)).toEqual([])
  },
)

test('explains scores with the full-text table until the index is complete', async () => {
  const connection = new SqliteConnection(await fullTextStore(20))
  onTestFinished(() => connection.close())
  const reads = createReadOperations(connection)
  const query = { text: 'apple aq nowhere', visibility: all, statistics: 'collection' as const }
  const ranked = await reads.lexical({ key, query: { ...query, limit: 3 } })
  const among = ranked.map(({ record }) => record)
  const { records, words } = await reads.explain({ key, query: { ...query, among } })
  expect(records).toBe(20)
  expect(words.map(word => [word.word, word.records])).toEqual([
    ['apple', 20],
    ['aq', 1],
    ['nowhere', 0],
  ])
  for (const { record, score } of ranked) {
    const scores = words.flatMap(word => word.scores.filter(scored => scored.record === record))
    expect(scores.reduce((sum, scored) => sum + scored.score, 0)).toBeCloseTo(score, 9)
  }
})

test('statistics report the progress of an index that is being built', async () => {
  const path = await fullTextStore(600)
  const { connection, backfill } = openStepwise(path)
  const { stats } = createReadOperations(connection)
  const progress = async () => (await stats({ key })).index
  expect(await progress()).toMatchObject({ generation: null, building: { records: 0, recordsTotal: 600 } })
  await backfill.step()
  expect(await progress()).toMatchObject({ generation: null, building: { records: 256, recordsTotal: 600 } })
  while (await backfill.step());
  expect(await progress()).toMatchObject({ generation: 1, language: 'auto', building: null })
})

test('statistics report a failure of the background work, and its end', async () => {
  const path = await fullTextStore(10)
  const state = new SqliteConnection(path)
  onTestFinished(() => state.close())
  state.database.exec(
    `CREATE TRIGGER broken BEFORE INSERT ON posting_segment BEGIN SELECT raise(ABORT, 'broken'); END`,
  )
  const { content, close } = await openEmbeddedStore({ path, threads: true })
  onTestFinished(close)
  const failure = async () => (await content.stats(key)).index!.failure
  await vi.waitFor(async () => expect(await failure()).toMatchObject({ message: expect.any(String) }), {
    timeout: 5_000,
  })
  state.database.exec('DROP TRIGGER broken')
  await content.write([upsert(recordWithText('more', 'apple'))], [])
  await vi.waitFor(async () => expect(await failure()).toBeNull(), { timeout: 5_000 })
})

test('a search finds what was written and not what was deleted while the index is filled', async () => {
  const path = await fullTextStore(600)
  const { write, search, backfill } = openStepwise(path)
  const numbers = async () =>
    (await search({ key, query: { text: 'apple', limit: 9_999, visibility: all, statistics: 'collection' } }))
      .length
  expect(await backfill.step()).toBe(true)
  await write({
    changes: [
      { op: 'deleteRecord', ...key, id: 'r1' },
      { op: 'deleteRecord', ...key, id: 'r599' },
    ],
    rows: [],
  })
  await write({
    changes: [
      upsert(recordWithText('r2', 'apple'), recordWithText('r300', 'pear'), recordWithText('new', 'apple')),
    ],
    rows: [],
  })
  expect(await numbers()).toBe(598)
  while (await backfill.step()) expect(await numbers()).toBe(598)
  expect(await numbers()).toBe(598)
  await write({
    changes: [upsert(recordWithText('after', 'apple')), { op: 'deleteRecord', ...key, id: 'r3' }],
    rows: [],
  })
  expect(await numbers()).toBe(598)
  expect(problemsOf(path)).toEqual([])
})

test('a slice shares its commit with writes before and after it', async () => {
  const path = await fullTextStore(3)
  const { backfill, queue, contentChanges } = openStepwise(path)
  const write = (...changes: Parameters<ContentChanges['apply']>[0]) =>
    queue.run({ run: defer => contentChanges.apply(changes, defer), shouldCommit: ({ ok }) => ok })
  const before = backfill.step()
  await Promise.all([
    write(upsert(recordWithText('one', 'apple')), { op: 'deleteRecord', ...key, id: 'r0' }),
    before,
    write(upsert(recordWithText('two', 'apple')), { op: 'deleteRecord', ...key, id: 'r1' }),
  ])
  while (await backfill.step());
  const { content, close } = await openEmbeddedStore({ path })
  onTestFinished(close)
  expect((await found(content, 'apple')).sort()).toEqual(['one', 'r2', 'two'])
  expect(problemsOf(path)).toEqual([])
})

test('a change of the language takes effect at once for new indexes, and later for existing ones', async () => {
  const path = scratchPath()
  await (await openEmbeddedStore({ path })).close()
  const { connection, write, search, backfill } = openStepwise(path)
  const ranked = async (text: string) =>
    (await search({ key, query: { text, limit: 9, visibility: all, statistics: 'collection' } })).length
  await write({
    changes: [createCollection(), upsert(recordWithText('a', 'Die Häuser der Stadt'))],
    rows: [],
  })
  expect(await ranked('Haus')).toBe(0)
  await write({ changes: [{ op: 'setLanguage', ...key, language: 'de-AT' }], rows: [] })
  expect(await ranked('Häuser')).toBe(1)
  while (await backfill.step());
  expect(await ranked('Haus')).toBe(1)
  expect(connection.prepare('SELECT generation, language FROM posting_index').all()).toEqual([
    { generation: 2, language: 'de' },
  ])
  expect(problemsOf(path)).toEqual([])
})

test('any order of writes, deletions, changes of the language and slices of two processes gives a sound index', async () => {
  type Step = { op: 'add' | 'remove' | 'language' | 'fill'; n: number }
  const steps = fc.array(
    fc.record({
      op: fc.constantFrom('add', 'add', 'remove', 'fill', 'fill', 'language'),
      n: fc.nat(40),
    }) as fc.Arbitrary<Step>,
    { minLength: 5, maxLength: 25 },
  )
  await fc.assert(
    fc.asyncProperty(steps, async run => {
      const path = await fullTextStore(20)
      const processes = [openStepwise(path), openStepwise(path)]
      await Promise.all(
        run.map(({ op, n }, at) => {
          const { write, backfill } = processes[at % 2]!
          if (op === 'fill') return backfill.step()
          const change = {
            add: () => upsert(recordWithText(`r${n}`, `apple ${n}`)),
            remove: () => ({ op: 'deleteRecord' as const, ...key, id: `r${n}` }),
            language: () => ({ op: 'setLanguage' as const, ...key, language: n % 2 ? 'de' : null }),
          }[op]()
          return write({ changes: [change], rows: [] })
        }),
      )
      while (await processes[0]!.backfill.step());
      expect(problemsOf(path)).toEqual([])
    }),
    { numRuns: 15 },
  )
}, 120_000)

test('a failure of the background work does not affect searches, and the next write tries again', async () => {
  const path = await fullTextStore(10)
  const failing = vi.spyOn(PostingBackfill.prototype, 'step').mockRejectedValueOnce(new Error('disk full'))
  onTestFinished(() => failing.mockRestore())
  const { content, close } = await openEmbeddedStore({ path })
  onTestFinished(close)
  expect(await found(content, wordOf(1))).toEqual(['r1'])
  await content.write([upsert(recordWithText('more', 'pear'))], [])
  await vi.waitFor(() => expect(problemsOf(path)).toEqual([]))
  await vi.waitFor(() => {
    const file = new SqliteConnection(path)
    const index = file.prepare('SELECT 1 FROM posting_index WHERE active = 1').get()
    file.close()
    expect(index).toBeDefined()
  })
  expect(await found(content, 'pear')).toEqual(['more'])
})

test(`a store is intact after each of ${KILL_ROUNDS} kills while its index is filled`, {
  timeout: 60_000 + 15_000 * KILL_ROUNDS,
}, async () => {
  const records = 6_000
  const path = await fullTextStore(records)
  const acknowledged: string[] = []
  let killsDuringWork = 0
  for (let round = 0; round < KILL_ROUNDS; round++) {
    const child = spawn(process.execPath, [programPath('store/backfill'), path, `writer${round}`], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    let output = ''
    child.stdout.on('data', (bytes: Buffer) => {
      output += bytes.toString()
    })
    await once(child.stdout, 'data')
    await new Promise(resolve => setTimeout(resolve, (round * 37) % 50))
    child.kill('SIGKILL')
    const [, signal] = await once(child, 'close')
    expect(signal).toBe('SIGKILL')
    const ids = output.split('\n').slice(0, -1)
    acknowledged.push(...ids)
    const { connection, search } = openStepwise(path)
    const { due } = connection.prepare<{ due: 0 | 1 }>('SELECT reindex AS due FROM collection').get()!
    killsDuringWork += due
    expect(problemsOf(path)).toEqual([])
    const query = {
      text: `writer${round}`,
      limit: 99_999,
      visibility: all,
      statistics: 'collection' as const,
    }
    expect((await search({ key, query })).length).toBeGreaterThanOrEqual(ids.length)
  }
  expect(killsDuringWork).toBeGreaterThan(0)
  const { backfill } = openStepwise(path)
  while (await backfill.step());
  expect(problemsOf(path)).toEqual([])
  const { content, close } = await openEmbeddedStore({ path })
  onTestFinished(close)
  expect((await found(content, 'apple')).length).toBe(records)
  const written = new Set(await found(content, 'written'))
  expect(acknowledged.filter(id => !written.has(id))).toEqual([])
})
