import { beforeEach, expect, onTestFinished, test, vi } from 'vitest'
import { WbError } from '../../src/contract/errors.ts'
import type { Write } from '../../src/storage/rows.ts'
import { CommitQueue, type WriteTask } from '../../src/storage/sqlite/commit-queue.ts'
import { SqliteConnection } from '../../src/storage/sqlite/connection.ts'
import Database from '../../src/storage/sqlite/driver.ts'
import { openConnection } from '../../src/storage/sqlite/open.ts'
import { createReadOperations, createWriter } from '../../src/storage/sqlite/operations.ts'
import { tables } from '../../src/storage/tables.ts'
import { waitForDisk } from '../harness/volatile-stores.ts'
import { all, createCollection, key, recordWithText, upsert } from './content-data.ts'
import { scratchPath } from './scratch.ts'

let connection: SqliteConnection
let path: string

beforeEach(async () => {
  path = scratchPath()
  connection = await openConnection(path)
  onTestFinished(() => connection.close())
})

const setting = (name: string, value = ''): Write => ({
  op: 'insert',
  table: tables.settings,
  row: { name, value },
})
const names = () =>
  connection
    .prepare<{ name: string }>(`SELECT name FROM settings WHERE name <> 'store-id' ORDER BY ordinal`)
    .all()
    .map(({ name }) => name)

/** Returns a unit that inserts a setting and then calls `end`. */
function unit(name: string, end: () => boolean = () => true): WriteTask<boolean> {
  return {
    run: () => {
      connection.prepare('INSERT INTO settings (version, body) VALUES (1, ?)').run(JSON.stringify({ name }))
      return end()
    },
    shouldCommit: kept => kept,
  }
}

/** Counts further runs of a statement. */
function countRuns(sql: string): () => number {
  const statement = connection.prepare(sql)
  const run = vi.spyOn(statement, 'run')
  return () => run.mock.calls.length
}

test('units of one turn of the event loop share a commit, and units that wait share the next', async () => {
  const commits = countRuns('COMMIT')
  const queue = new CommitQueue(connection)
  await Promise.all(Array.from({ length: 200 }, (_, n) => queue.run(unit(`s${n}`))))
  expect(commits()).toBe(1)
  await Promise.all(Array.from({ length: 300 }, (_, n) => queue.run(unit(`t${n}`))))
  expect(commits()).toBe(3)
  expect(names()).toHaveLength(500)
})

test('a unit that is rejected or throws rolls back only its own writes', async () => {
  const queue = new CommitQueue(connection)
  const outcomes = await Promise.allSettled([
    queue.run(unit('kept')),
    queue.run(unit('refused', () => false)),
    queue.run(
      unit('thrown', () => {
        throw new RangeError('a defect')
      }),
    ),
    queue.run(unit('kept too')),
  ])
  expect(
    outcomes.map(outcome => (outcome.status === 'fulfilled' ? outcome.value : String(outcome.reason))),
  ).toEqual([true, false, 'RangeError: a defect', true])
  expect(names()).toEqual(['kept', 'kept too'])
})

test('nothing resolves before the commit, and a failed commit rejects all units', async () => {
  const commit = connection.prepare('COMMIT')
  const failing = vi.spyOn(commit, 'run').mockImplementationOnce(() => {
    throw new Database.SqliteError('disk I/O error', 'SQLITE_IOERR')
  })
  const ops = createWriter(connection).operations
  const outcomes = await Promise.allSettled(
    Array.from({ length: 10 }, (_, n) => ops.write({ changes: [], rows: [setting(`s${n}`)] })),
  )
  expect(failing).toHaveBeenCalledTimes(1)
  for (const outcome of outcomes) {
    expect(outcome.status).toBe('rejected')
    const { reason } = outcome as PromiseRejectedResult
    expect(reason).toBeInstanceOf(WbError)
    expect(reason).toMatchObject({
      code: 'control_plane_unavailable',
      message: 'the store cannot be read or written',
      cause: { message: 'disk I/O error' },
    })
  }
  expect(names()).toEqual([])
  expect(await ops.write({ changes: [], rows: [setting('after')] })).toEqual({ ok: true })
  expect(names()).toEqual(['after'])
})

test('a full disk rejects the whole group without a partial write, and later writes succeed', async () => {
  const ops = createWriter(connection).operations
  await ops.write({ changes: [createCollection()], rows: [] })
  const pages = connection.database.pragma('page_count', { simple: true }) as number
  connection.database.pragma(`max_page_count = ${pages + 4}`)
  const outcomes = await Promise.allSettled(
    Array.from({ length: 8 }, (_, n) =>
      ops.write({
        changes: [upsert(recordWithText(`r${n}`, 'word '.repeat(1_000)))],
        rows: [setting(`s${n}`, 'x'.repeat(4_000))],
      }),
    ),
  )
  for (const outcome of outcomes)
    expect(outcome).toMatchObject({
      status: 'rejected',
      reason: {
        code: 'control_plane_unavailable',
        message: 'the disk of the data directory is full',
        hint: expect.stringMatching(/^Free some space on that disk/),
      },
    })
  expect(names()).toEqual([])
  connection.database.pragma('max_page_count = 1000000')
  expect(await ops.write({ changes: [upsert(recordWithText('r', 'word'))], rows: [setting('s')] })).toEqual({
    ok: true,
  })
})

test('a change that violates the schema is reported as such and fails only its own unit', async () => {
  const refusal = "CREATE TEMP TRIGGER no BEFORE INSERT ON settings WHEN new.body ->> '$.name' = 'no'"
  connection.prepare(`${refusal} BEGIN SELECT RAISE(ABORT, 'a text of the trigger'); END`).run()
  const ops = createWriter(connection).operations
  const [before, refused, after] = await Promise.allSettled([
    ops.write({ changes: [], rows: [setting('before')] }),
    ops.write({ changes: [], rows: [setting('with it'), setting('no')] }),
    ops.write({ changes: [], rows: [setting('after')] }),
  ])
  expect([before, after]).toEqual(Array(2).fill({ status: 'fulfilled', value: { ok: true } }))
  expect(refused).toMatchObject({
    reason: { code: 'control_plane_unavailable', message: 'the store rejected this change' },
  })
  expect(names()).toEqual(['before', 'after'])
})

test('indexes the text of committed units only', async () => {
  const ops = createWriter(connection).operations
  await ops.write({ changes: [createCollection()], rows: [] })
  await Promise.all(
    Array.from({ length: 9 }, (_, n) =>
      ops.write({
        changes: [upsert(recordWithText(`r${n}`, 'apple'))],
        rows: [setting(`s${Math.floor(n / 3)}`)],
      }),
    ),
  )
  const records = connection.prepare<{ record: number }>('SELECT record FROM record ORDER BY record').all()
  expect(records).toHaveLength(3)
  const query = { text: 'apple', limit: 9, statistics: 'collection' as const, visibility: all }
  const found = await createReadOperations(connection).lexical({ key, query })
  expect(found.map(({ record }) => record)).toEqual(records.map(({ record }) => record))
  expect(connection.prepare('SELECT slots FROM posting_segment').all()).toEqual([{ slots: 3 }])
  expect(connection.prepare('SELECT name FROM collection').all()).toEqual([{ name: key.name }])
})

test('waits for a lock of another process, then reports it', async () => {
  const other = new SqliteConnection(path)
  await other.begin()
  const waited = connection.begin(3).catch((error: unknown) => error)
  expect(await waited).toMatchObject({ code: 'SQLITE_BUSY' })
  const begun = connection.begin()
  setImmediate(() => other.rollback())
  await begun
  connection.rollback()
  other.close()
})

test('the log is synced at each commit, so acknowledged writes are on disk', async () => {
  waitForDisk()
  const { database } = await another()
  expect(database.pragma('journal_mode', { simple: true })).toBe('wal')
  expect(database.pragma('synchronous', { simple: true })).toBe(2)
})

test('a snapshot sees one state of the store despite concurrent writes', async () => {
  const other = createWriter(await another()).operations
  const begun = connection.prepare('BEGIN')
  begun.run()
  expect(names()).toEqual([])
  await other.write({ changes: [], rows: [setting('late')] })
  expect(names()).toEqual([])
  connection.rollback()
  expect(names()).toEqual(['late'])
  const states = connection.snapshot(() => [names(), connection.database.inTransaction])
  expect(states).toEqual([['late'], true])
  expect(connection.database.inTransaction).toBe(false)
})

test('a read-only connection rejects writes', async () => {
  const reader = await another()
  reader.makeReadOnly()
  const writing = createWriter(reader).operations.write({ changes: [], rows: [setting('a')] })
  await expect(writing).rejects.toMatchObject({
    code: 'control_plane_unavailable',
    message: 'the store cannot be written',
  })
})

test('a dropped collection leaves no table', async () => {
  const ops = createWriter(connection).operations
  const tablesNow = () =>
    connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").all()
  const before = tablesNow()
  await ops.write({ changes: [createCollection(), upsert(recordWithText('a', 'apple'))], rows: [] })
  const [{ record } = { record: 0 }] = connection
    .prepare<{ record: number }>('SELECT record FROM record')
    .all()
  const fit = { generation: 1, owner: 'one' }
  await ops.lease({ key, owner: fit.owner, now: 0, until: 1 })
  await ops.stage({
    key,
    lease: fit,
    vectors: [{ record, vector: Float32Array.of(1, 0) }],
  })
  const space = { op: 'createSpace', ...key, space: 'other', dimension: 2, metric: 'dot' } as const
  await ops.write({ changes: [space], rows: [] })
  expect(tablesNow().length).toBeGreaterThan(before.length)
  await Promise.all([
    ops.write({ changes: [upsert(recordWithText('b', 'pear'))], rows: [] }),
    ops.write({ changes: [{ op: 'dropCollection', ...key }], rows: [] }),
  ])
  expect(tablesNow()).toEqual(before)
  for (const table of ['collection', 'record', 'record_gone', 'embedder_model', 'vector_space'])
    expect(connection.prepare(`SELECT count(*) AS rows FROM ${table}`).get(), table).toEqual({ rows: 0 })
})

test('retries the switch to WAL mode if another process makes it at the same moment', async () => {
  const busy = new Database.SqliteError('database is locked', 'SQLITE_BUSY')
  const makeDurable = vi.spyOn(SqliteConnection.prototype, 'makeDurable').mockImplementationOnce(() => {
    throw busy
  })
  const opened = await openConnection(scratchPath())
  expect(makeDurable).toHaveBeenCalledTimes(2)
  opened.close()
  makeDurable.mockRestore()
})

async function another(): Promise<SqliteConnection> {
  const opened = await openConnection(path)
  onTestFinished(() => opened.close())
  return opened
}
