import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { describe, expect, onTestFinished, test } from 'vitest'
import { anonymousContext } from '../../src/access/subject.ts'
import { systemClock } from '../../src/base/clock.ts'
import { Cursors, Pager } from '../../src/storage/cursor.ts'
import { openEmbeddedStore } from '../../src/storage/open.ts'
import type { AnyTable } from '../../src/storage/rows.ts'
import { contentChecks } from '../../src/storage/sqlite/check-content.ts'
import { SqliteConnection } from '../../src/storage/sqlite/connection.ts'
import Database from '../../src/storage/sqlite/driver.ts'
import { migrate } from '../../src/storage/sqlite/migrate.ts'
import { migrations } from '../../src/storage/sqlite/migrations/index.ts'
import { openConnection } from '../../src/storage/sqlite/open.ts'
import { tableWithIndex } from '../../src/storage/sqlite/rows.ts'
import { tables } from '../../src/storage/tables.ts'
import { Workspaces } from '../../src/workspaces/workspaces.ts'
import { programPath } from '../harness/program.ts'
import { all } from './content-data.ts'
import { scratchPath } from './scratch.ts'

const fixtures = join(import.meta.dirname, '..', 'fixtures', 'store')
const silent = { debug() {}, info() {}, warn() {}, error() {} }
const declared: AnyTable[] = Object.values(tables)

async function opened(path: string): Promise<SqliteConnection> {
  const connection = await openConnection(path)
  onTestFinished(() => connection.close())
  return connection
}

/** Unpacks a store of an earlier schema. */
function earlier(version: number): string {
  const path = scratchPath()
  writeFileSync(path, gunzipSync(readFileSync(join(fixtures, `v${version}.db.gz`))))
  return path
}

/** Returns tables and indexes with their SQL, except those of each collection. */
function schemaOf(connection: SqliteConnection): unknown[] {
  return connection
    .prepare(
      `SELECT type, name, sql FROM sqlite_schema WHERE name NOT GLOB 'vec_*' AND name NOT GLOB 'fts_*' ORDER BY type, name`,
    )
    .all()
}

function pragma(path: string, name: string): unknown {
  const database = new Database(path, { readonly: true })
  try {
    return database.pragma(name, { simple: true })
  } finally {
    database.close()
  }
}

describe.each(declared)('schema of $name', table => {
  test('has each column of a key, a unique set or an index', async () => {
    const connection = await opened(':memory:')
    const columns = connection
      .prepare<{ name: string }>(`SELECT name FROM pragma_table_xinfo('${table.name}')`)
      .all()
    const needed = [
      ...table.key,
      ...Object.values(table.unique).flat(),
      ...Object.values(table.indexes).flat(),
    ]
    expect(columns.map(({ name }) => name)).toEqual(expect.arrayContaining(needed))
  })

  test('has a unique index for the key and each unique set', async () => {
    const connection = await opened(':memory:')
    const sets = connection
      .prepare<{ columns: string }>(
        `SELECT (SELECT group_concat(c.name) FROM pragma_index_info(i.name) c) AS columns
          FROM pragma_index_list('${table.name}') i WHERE i."unique"`,
      )
      .all()
      .map(({ columns }) => columns.split(',').sort())
    for (const columns of [table.key, ...Object.values(table.unique)])
      expect(sets).toContainEqual([...columns].sort())
    expect(sets).toHaveLength(1 + Object.keys(table.unique).length)
  })

  test('reads each list in index order without sorting', async () => {
    const connection = await opened(':memory:')
    for (const [index, columns] of Object.entries(table.indexes)) {
      for (let matched = 0; matched < columns.length; matched++) {
        const prefix = columns.slice(0, matched).map(column => `${column} IS NULL`)
        const plan = connection
          .prepare<{ detail: string }>(
            `EXPLAIN QUERY PLAN SELECT body FROM ${tableWithIndex(table, index)}
              WHERE ${prefix.join(' AND ') || '1'} ORDER BY ${columns.slice(matched).join(', ')}`,
          )
          .all()
        const order = columns[0] === 'ordinal' ? `SCAN ${table.name}` : `USING INDEX ${table.name}_${index}`
        expect(plan.map(({ detail }) => detail).join()).toContain(order)
        expect(plan, `${index} after ${matched} columns`).toHaveLength(1)
      }
    }
  })
})

test('the first schema has the tables of later features', async () => {
  const connection = await opened(':memory:')
  const later = [
    'api_keys',
    'principals',
    'jobs',
    'conversations',
    'messages',
    'mcp_servers',
    'knowledge_filters',
  ]
  for (const name of [...later, 'audit', 'policy_audit', 'secret_releases'])
    expect(connection.prepare('SELECT count(*) AS rows FROM sqlite_schema WHERE name = ?').get(name)).toEqual(
      { rows: 1 },
    )
})

test('there is a fixture of every schema up to the current one', () => {
  const kept = migrations.map((_, at) => `v${at + 1}.db.gz`)
  expect(
    readdirSync(fixtures)
      .filter(name => name.endsWith('.gz'))
      .sort(),
  ).toEqual(kept.sort())
})

/** Requires that a store has the rows, the content and the embedder of the fixture of a schema, and migrates it. */
async function requireContent(path: string, schema: number): Promise<void> {
  const { rows, content, close } = await openEmbeddedStore({ path })
  onTestFinished(close)
  const key = { workspaceId: 'w', name: 'kb' }
  expect(await rows.get(tables.settings, ['cursor'])).toMatchObject({
    row: { value: 'secret' },
    version: 1,
  })
  expect(await rows.get(tables.documents, ['w', 'k', 'd'])).toMatchObject({
    row: { status: 'ready' },
    version: 2,
  })
  expect(await content.collection(key)).toMatchObject({ dimension: 4, records: 2, generation: 1 })
  const hits = await content.nearest(key, {
    vector: Float32Array.of(0, 0, 1, 0),
    limit: 1,
    visibility: all,
  })
  const worded = await content.lexical!.search(key, {
    text: 'pears',
    limit: 9,
    visibility: all,
    statistics: 'collection',
  })
  expect(worded.map(({ record }) => record)).toEqual(hits.map(({ record }) => record))
  const [view] = await content.read(key, [hits[0]!.record], { vectors: true, visibility: all })
  expect(view).toMatchObject({ id: 'd:1', text: 'pear tree', payload: { n: 1, lang: 'en' } })
  expect(await content.fitted!.model(key)).toEqual({
    generation: 1,
    model: { terms: 'apple', weights: Uint8Array.of(1, 2, 3) },
  })
  expect(await content.collection(key)).toMatchObject({ fittedRecords: 2 })
  expect(await content.fitted!.fitCounts(key, all)).toMatchObject({ unfitted: 0 })
  const space = { ...key, space: 'sentences' }
  if (schema < 8) await expect(content.collection(space)).resolves.toBeUndefined()
  else {
    const query = { vector: Float32Array.of(1, 0, 0), limit: 9, visibility: all }
    expect((await content.nearest(space, query)).map(({ score }) => score)).toEqual([1, 0])
  }
}

describe.each(migrations.map((_, at) => at + 1))('a store of schema %i', version => {
  test('is migrated to the schema of a new store', async () => {
    const [old, fresh] = [await opened(earlier(version)), await opened(':memory:')]
    expect(old.database.pragma('user_version', { simple: true })).toBe(migrations.length)
    expect(schemaOf(old), 'a released schema changes by a further migration only').toEqual(schemaOf(fresh))
  })

  test('keeps its rows, its content and its embedder', () => requireContent(earlier(version), version))
})

test('documents and jobs of an earlier schema are listed by tags', async () => {
  const path = earlier(12)
  const before = new Database(path)
  const place = { workspaceId: 'w', knowledgeBaseId: 'k', documentId: 'old' }
  const insertInto = (table: string, row: object) =>
    before.prepare(`INSERT INTO ${table} (version, body) VALUES (1, ?)`).run(JSON.stringify(row))
  insertInto('documents', { ...place, visibleTo: ['ada', '*'], ownerPrincipalId: 'bob', metadata: { n: 1 } })
  insertInto('jobs', { ...place, jobId: 'old' })
  before.close()
  const { database } = await opened(path)
  const tagsIn = (table: string) =>
    database.prepare<[], string>(`SELECT tag FROM ${table} ORDER BY tag`).pluck().all()
  const tags = ['k/$owner=bob', 'k/n=1', 'k/visible_to=*', 'k/visible_to=ada']
  expect(tagsIn('documents_tags')).toEqual(tags)
  expect(tagsIn('jobs_tags')).toEqual(['k', ...tags])
})

test.each(migrations.slice(1).map((_, at) => at + 2))(
  'a store can be migrated after a kill during its migration to schema %i',
  async schema => {
    const path = earlier(1)
    writeFileSync(`${path}.copy`, 'an unfinished copy')
    const { signal } = spawnSync(process.execPath, [programPath('store/migrate'), path, String(schema)])
    expect(signal).toBe('SIGKILL')
    expect(pragma(path, 'user_version')).toBe(1)
    await requireContent(path, 1)
    expect(pragma(path, 'user_version')).toBe(migrations.length)
    for (const file of [path, `${path}.before-${migrations.length}`])
      expect(pragma(file, 'integrity_check')).toBe('ok')
  },
)

const better = [
  ...migrations,
  'CREATE TABLE better (n INTEGER); INSERT INTO better SELECT count(*) FROM documents',
]

test('a store is copied before a migration, and only the last copy is kept', async () => {
  const path = earlier(1)
  writeFileSync(`${path}.before-0`, 'an earlier copy')
  const connection = await opened(path)
  await migrate(connection, path, better)
  expect(connection.prepare('SELECT n FROM better').get()).toEqual({ n: 1 })
  const copies = readdirSync(dirname(path)).filter(
    name => name.includes('.before-') || name.includes('.copy'),
  )
  expect(copies).toEqual([`workbase.db.before-${better.length}`])
  expect(statSync(join(dirname(path), copies[0]!)).mode & 0o777).toBe(0o600)
  const copy = new SqliteConnection(join(dirname(path), copies[0]!))
  expect(copy.database.pragma('user_version', { simple: true })).toBe(migrations.length)
  expect(copy.prepare('SELECT name FROM settings').all()).toEqual([
    { name: 'cursor' },
    { name: 'access-versions-start' },
    { name: 'store-id' },
  ])
  copy.close()
})

test('a failed migration changes nothing', async () => {
  const path = earlier(1)
  const connection = await opened(path)
  const before = schemaOf(connection)
  const failing = [...migrations, 'CREATE TABLE half (n); INSERT INTO nowhere VALUES (1)']
  await expect(migrate(connection, path, failing)).rejects.toThrow('no such table')
  expect(schemaOf(connection)).toEqual(before)
  expect(connection.database.pragma('user_version', { simple: true })).toBe(migrations.length)
})

test('a store of a newer schema is rejected by number and not changed', async () => {
  const path = earlier(1)
  const connection = new SqliteConnection(path)
  connection.makeDurable()
  await migrate(connection, path, better)
  connection.close()
  const before = readFileSync(path)
  const files = readdirSync(dirname(path))
  const opening = openEmbeddedStore({ path })
  await expect(opening).rejects.toMatchObject({
    code: 'control_plane_unavailable',
    message: `the store has schema ${better.length}, but this version of Workbase supports schemas up to ${migrations.length}; nothing was changed`,
  })
  expect(readFileSync(path).equals(before)).toBe(true)
  expect(readdirSync(dirname(path))).toEqual(files)
})

test('a new store is created with its folder, private to its owner', async () => {
  const path = join(dirname(scratchPath()), 'deep', 'data', 'workbase.db')
  const { rows, close } = await openEmbeddedStore({ path })
  await rows.atomic([{ op: 'insert', table: tables.settings, row: { name: 'a', value: '' } }])
  const modes = readdirSync(dirname(path)).map(name => statSync(join(dirname(path), name)).mode & 0o777)
  expect(new Set(modes)).toEqual(new Set([0o600]))
  expect(statSync(dirname(path)).mode & 0o777).toBe(0o700)
  await close()
})

test.each([
  [
    'a file that is no store',
    'this is no database, '.repeat(500),
    'the store is not a database of this runtime',
  ],
  ['a store with a broken page', undefined, 'the store is damaged'],
])('%s: the message is fixed, and the driver error is its cause', async (_, text, message) => {
  const path = text === undefined ? earlier(1) : scratchPath()
  const bytes = text === undefined ? readFileSync(path) : Buffer.from(text)
  if (text === undefined) bytes.fill(0xff, 100, 4_096)
  writeFileSync(path, bytes)
  const error = await openEmbeddedStore({ path })
    .then(({ rows }) => rows.get(tables.settings, ['a']))
    .catch((reason: unknown) => reason)
  expect(error).toMatchObject({ code: 'control_plane_unavailable', message, cause: expect.any(Error) })
})

test('reports a data directory that cannot be created', async () => {
  const file = scratchPath()
  writeFileSync(file, '')
  await expect(openEmbeddedStore({ path: join(file, 'workbase.db') })).rejects.toMatchObject({
    code: 'control_plane_unavailable',
    message: `the folder ${file} cannot be created (EEXIST)`,
  })
  mkdirSync(`${file}.d`)
  await expect(openEmbeddedStore({ path: `${file}.d` })).rejects.toMatchObject({
    code: 'control_plane_unavailable',
  })
  expect(existsSync(join(`${file}.d`, 'workbase.db'))).toBe(false)
})

test('a newer schema is detected in the log of a store that was not closed', async () => {
  const path = earlier(1)
  const connection = await opened(path)
  await migrate(connection, path, better)
  await expect(openEmbeddedStore({ path })).rejects.toMatchObject({
    code: 'control_plane_unavailable',
    message: expect.stringContaining(`schema ${better.length}`),
  })
})

describe('a store in which workspaces share a database', () => {
  const now = '2026-01-01T00:00:00.000Z'
  const url = 'https://db.example.com/a?b="c"'

  /** A workspace in the format of schema 2. */
  function kept(workspaceId: string, bound: { url: string | null; keyspace: string | null }) {
    const fields = { kind: 'astra', credentials: {}, rlacEnabled: false, createdAt: now, updatedAt: now }
    return { workspaceId, name: workspaceId, ...fields, ...bound }
  }

  test('S7.3-workspace_database_conflict: assigns it to the first workspace and rejects further ones', async () => {
    const path = earlier(2)
    const before = new Database(path)
    const insert = before.prepare('INSERT INTO workspaces (version, body) VALUES (1, ?)')
    const keyspaces = ['ks', 'a "quoted" \\ \t\u0001 ö\u2028\u{1f600}', null]
    for (const [n, keyspace] of keyspaces.entries())
      for (const place of ['first', 'second'])
        insert.run(JSON.stringify(kept(`${place}-${n}`, { url, keyspace })))
    insert.run(JSON.stringify(kept('unbound', { url: null, keyspace: 'ks' })))
    before.close()

    const { rows, close } = await openEmbeddedStore({ path })
    onTestFinished(close)
    const parts = {
      rows,
      pager: new Pager(rows, new Cursors('key')),
      clock: systemClock,
      log: silent,
      purge: [],
      publish: async () => {},
      refitAfter: <T>(_workspaceId: string, change: () => Promise<T>) => change(),
    }
    const room = new Workspaces(parts)
    const record = () =>
      ({ op: 'requireNone', table: tables.agents, index: 'byWorkspace', prefix: [''] }) as const
    const { signal } = new AbortController()
    const auth = anonymousContext('disabled')
    const caller = { auth, record, signal, checkChange: () => {}, recordChange: () => [] }
    const taken = { code: 'workspace_database_conflict' }
    for (const [n, keyspace] of keyspaces.entries()) {
      const stored = await rows.get(tables.workspaces, [`first-${n}`])
      expect(stored!.row.databaseKey).toBe(JSON.stringify([url, keyspace]))
      const body = {
        name: `third-${n}`,
        kind: 'astra',
        url,
        keyspace,
        credentials: {},
        rlacEnabled: false,
      } as const
      await expect(room.create(body, caller)).rejects.toMatchObject(taken)
      const renamed = await room.update(`second-${n}`, { name: `renamed-${n}`, url }, caller)
      expect(renamed.name).toBe(`renamed-${n}`)
      await room.update(`first-${n}`, { name: `kept-${n}` }, caller)
    }
    await expect(room.update('unbound', { url }, caller)).rejects.toMatchObject(taken)
    await room.update('first-0', { keyspace: 'elsewhere' }, caller)
    expect((await room.update('unbound', { url }, caller)).url).toBe(url)
    await expect(room.update('second-1', { keyspace: 'ks' }, caller)).rejects.toMatchObject(taken)
  })
})

test('a fit that was running in a store of schema 7 is continued', async () => {
  const path = earlier(7)
  const before = new Database(path)
  before.exec(`UPDATE collection SET staging = 1, unfitted = 1, lease_owner = 'fit', lease_until = ${Number.MAX_SAFE_INTEGER};
    CREATE TABLE vec_1_2 (record INTEGER PRIMARY KEY, data BLOB NOT NULL);
    INSERT INTO vec_1_2 SELECT min(record), data FROM vec_1_1`)
  before.close()

  const { content, close } = await openEmbeddedStore({ path })
  onTestFinished(close)
  const key = { workspaceId: 'w', name: 'kb' }
  const fitted = content.fitted!
  const lease = { generation: 2, owner: 'fit' }
  expect(await fitted.fitCounts(key, all)).toEqual({ unfitted: 1, records: 2 })
  expect(await fitted.lease(key, 'other', 1)).toBe(false)
  const left = await fitted.unstaged(key, 2, 9)
  expect(left.map(({ text }) => text)).toEqual(['pear tree'])
  const [{ record } = { record: 0 }] = left
  expect(await fitted.stage(key, lease, [{ record, vector: Float32Array.of(1, 0, 0, 0) }])).toBe(true)
  const model = { terms: 'pear', weights: Uint8Array.of(4) }
  expect(await fitted.swap(key, lease, { model, records: 2, through: record })).toBe(true)
  expect(await content.collection(key)).toMatchObject({ metric: 'cosine', fitted: true, generation: 2 })
  expect(await fitted.fitCounts(key, all)).toMatchObject({ unfitted: 0 })
  const { database } = await opened(path)
  expect(contentChecks(database).filter(({ count }) => count > 0)).toEqual([])
})

test('adds the last activity to conversations of schema 3, and the time of reading document text', async () => {
  const path = earlier(3)
  const before = new Database(path)
  const put = (table: string, row: object) =>
    before.prepare(`INSERT INTO ${table} (version, body) VALUES (1, ?)`).run(JSON.stringify(row))
  const at = (second: number) => `2026-01-01T00:00:0${second}.000Z`
  const message = (conversationId: string, second: number, fields: object) =>
    put('messages', {
      ...{
        workspaceId: 'w',
        conversationId,
        messageId: `${conversationId}-${second}`,
        messageTs: at(second),
      },
      ...{ role: 'user', content: '', tokenCount: null, metadata: {}, ...fields },
    })
  for (const conversationId of ['empty', 'plain', 'tool', 'grounded'])
    put('conversations', {
      ...{ workspaceId: 'w', agentId: 'a', conversationId, title: null, knowledgeBaseIds: [] },
      ...{ createdAt: at(0), ownerPrincipalId: null },
    })
  message('plain', 1, {})
  message('plain', 2, { role: 'agent' })
  message('tool', 1, {})
  message('tool', 2, { role: 'tool' })
  message('tool', 3, { role: 'tool' })
  message('grounded', 4, { role: 'agent', metadata: { context_chunks: '[]' } })
  before.close()

  const { rows, close } = await openEmbeddedStore({ path })
  onTestFinished(close)
  const found = await rows.list(tables.conversations, { index: 'byActivity', prefix: ['w'], limit: 9 })
  expect(
    found.map(({ row }) => [row.conversationId, row.lastActivityAt, row.untrustedSince ?? null]),
  ).toEqual([
    ['empty', at(0), null],
    ['plain', at(2), null],
    ['tool', at(3), at(2)],
    ['grounded', at(4), at(4)],
  ])
})
