import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { filters } from '../../src/contract/filters.ts'
import { checkSqliteStore } from '../../src/storage/sqlite/check.ts'
import Database from '../../src/storage/sqlite/driver.ts'
import { type Base, makeBase } from '../harness/resources.ts'
import { open } from '../harness/runtime.ts'
import { scratchPath } from './scratch.ts'

/** The bytes of a valid store and its contents. */
let sound: { bytes: Buffer; base: Base }

beforeEach(async () => {
  sound ??= await furnish()
})

async function furnish(): Promise<typeof sound> {
  const wb = await open()
  const base = await makeBase(wb)
  await wb.call(filters.create, { params: base.params, body: { name: 'kept', filter: {} } })
  const chunker = { maxChars: 20, minChars: 0, overlapChars: 0 }
  await base.ingest('alpha beta gamma delta epsilon', { chunker })
  await base.ingest('Another text.', { sourceFilename: 'another.txt' })
  await wb.send(`POST ${base.path}/documents`, { chunkTotal: 7, status: 'ready' })
  await wb.close()
  return { bytes: readFileSync(join(wb.dataDir, 'workbase.db')), base }
}

/** Copies the valid store and runs SQL on the copy. */
function planted(plant: (database: Database.Database) => void): string {
  const path = scratchPath()
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, sound.bytes)
  const database = new Database(path)
  plant(database)
  database.close()
  return path
}

/** Returns the findings without damaged rows, because most inserted rows lack fields. */
function findings(path: string): Record<string, number> {
  const wrong = checkSqliteStore(path)!.checks.filter(
    ({ check, count }) => count > 0 && !/^damaged rows/.test(check),
  )
  return Object.fromEntries(wrong.map(({ check, count }) => [check, count]))
}

function insert(table: string, body: object): (database: Database.Database) => void {
  return database =>
    void database.prepare(`INSERT INTO ${table} (version, body) VALUES (1, ?)`).run(JSON.stringify(body))
}

test('a deleted knowledge base leaves no tags, and takes none of others', async () => {
  const wb = await open()
  const deleted = await makeBase(wb)
  const { workspaceId, knowledgeBaseId } = deleted.params
  const others = [await makeBase(wb, { workspaceId }), await makeBase(wb, { knowledgeBaseId })]
  for (const base of [deleted, ...others])
    await base.ingest('A text.', { visibleTo: ['ada'], metadata: { team: 'red' }, sourceFilename: 'a.txt' })
  await deleted.delete()
  await wb.close()
  const path = join(wb.dataDir, 'workbase.db')
  expect(findings(path)).toEqual({})
  const database = new Database(path)
  const count = database.prepare('SELECT count(*) AS tags FROM documents_tags').get()
  database.close()
  expect(count).toEqual({ tags: 4 })
})

test('a valid store has no findings, and the check does not change it', () => {
  const path = planted(() => {})
  const report = checkSqliteStore(path)!
  expect(findings(path)).toEqual({})
  expect(report.checks.length).toBeGreaterThan(40)
  expect(report.schema).toBe(report.known)
  expect(readFileSync(path).equals(sound.bytes)).toBe(true)
})

describe('rows without their parents', () => {
  const ids = Object.fromEntries(
    'knowledgeBaseId documentId agentId conversationId messageId jobId start principalId keyId decisionId mcpServerId chunkingServiceId embeddingServiceId rerankingServiceId llmServiceId knowledgeFilterId releaseId'
      .split(' ')
      .map(name => [name, `planted-${name}`]),
  )
  test.each([
    'agents',
    'api_keys',
    'chunking_services',
    'conversations',
    'documents',
    'embedding_services',
    'job_batches',
    'job_inputs',
    'jobs',
    'knowledge_bases',
    'knowledge_filters',
    'llm_services',
    'mcp_servers',
    'messages',
    'policy_audit',
    'principals',
    'reranking_services',
    'secret_releases',
  ])('%s of a deleted workspace', table => {
    const path = planted(insert(table, { ...ids, workspaceId: 'gone' }))
    expect(findings(path)).toMatchObject({ [`${table} whose workspaceId no longer exists`]: 1 })
  })

  test.each([
    ['documents', 'knowledgeBaseId', {}],
    ['knowledge_filters', 'knowledgeBaseId', {}],
    ['jobs', 'knowledgeBaseId', {}],
    ['job_inputs', 'knowledgeBaseId', {}],
    ['job_batches', 'knowledgeBaseId', {}],
    ['conversations', 'agentId', {}],
    ['messages', 'conversationId', {}],
    ['knowledge_bases', 'chunkingServiceId', {}],
    ['knowledge_bases', 'embeddingServiceId', {}],
    ['knowledge_bases', 'rerankingServiceId', {}],
    ['agents', 'llmServiceId', {}],
    ['agents', 'rerankingServiceId', {}],
  ])('%s with a deleted %s', (table, column) => {
    const { workspaceId } = sound.base.params
    const { [column]: gone, ...others } = ids
    const path = planted(insert(table, { ...others, workspaceId, [column]: gone }))
    expect(findings(path)).toMatchObject({ [`${table} whose ${column} no longer exists`]: 1 })
    const unbound = planted(insert(table, { ...others, workspaceId, [column]: null }))
    expect(findings(unbound)).not.toHaveProperty([`${table} whose ${column} no longer exists`])
  })

  test('audit records of a deleted workspace are valid', () => {
    const path = planted(insert('audit', { auditId: 'a', workspaceId: 'gone', action: 'workspace.delete' }))
    expect(findings(path)).toEqual({})
  })

  test.each(['job_inputs', 'job_batches'])('%s of a finished job', table => {
    const { params } = sound.base
    const row = { ...params, jobId: 'j', start: 0 }
    for (const [status, count] of [
      ['running', 0],
      ['pending', 0],
      ['failed', 1],
      ['succeeded', 1],
    ] as const) {
      const path = planted(database => {
        insert('jobs', { ...params, jobId: 'j', status })(database)
        insert(table, row)(database)
      })
      const expected = count === 0 ? {} : { [`${table} without an unfinished job`]: count }
      expect(findings(path)).toEqual(expected)
    }
  })

  test('a document whose job is gone', () => {
    const row = { ...sound.base.params, documentId: 'd', status: 'writing', jobId: 'j' }
    expect(findings(planted(insert('documents', row)))).toEqual({
      'unfinished documents of ended jobs': 1,
    })
  })
})

describe('content', () => {
  test.each<[what: string, sql: string, found: Record<string, number>]>([
    [
      'a chunk too few',
      `DELETE FROM record WHERE chunk_index = 1`,
      {
        'documents with a wrong number of chunks': 1,
        'collections with a wrong count or size': 1,
        'records without a vector, and vectors without a record': 1,
        'records missing from the full-text index, and index entries without a record': 1,
      },
    ],
    [
      'a document that is gone from beside its chunks',
      `DELETE FROM documents WHERE body ->> '$.chunkTotal' = 2`,
      { 'chunks without a document': 2 },
    ],
    [
      'a document that says another number',
      `UPDATE documents SET body = json_set(body, '$.chunkTotal', 5) WHERE body ->> '$.chunkTotal' = 2`,
      { 'documents with a wrong number of chunks': 1 },
    ],
    [
      'a vector too few',
      `DELETE FROM vec_1_0 WHERE record = 1`,
      {
        'records without a vector, and vectors without a record': 1,
        'vector spaces with a wrong number of vectors': 1,
      },
    ],
    [
      'a vector too many',
      `INSERT INTO vec_1_0 (record, data) VALUES (99, zeroblob(512))`,
      {
        'records without a vector, and vectors without a record': 1,
        'vector spaces with a wrong number of vectors': 1,
      },
    ],
    [
      'a text too few',
      `UPDATE posting_segment SET deleted = 1 WHERE id = (SELECT min(id) FROM posting_segment);
       INSERT INTO posting_deletions (segment, bits) SELECT min(id), x'01' FROM posting_segment`,
      { 'records missing from the full-text index, and index entries without a record': 1 },
    ],
    [
      'a page of postings too few',
      `DELETE FROM posting_block`,
      {
        'damage in the posting index': expect.any(Number),
        'segments of the posting index with a wrong size': expect.any(Number),
      },
    ],
    [
      'a collection without an index of words',
      `UPDATE posting_index SET active = 0`,
      { 'records missing from the full-text index, and index entries without a record': 1 },
    ],
    [
      'an index of words that is being filled',
      `INSERT INTO posting_index (collection, generation, language, analyzer) VALUES (1, 2, 'de', 1)`,
      {},
    ],
    [
      'a table of vectors too many',
      `CREATE TABLE vec_1_7 (record INTEGER)`,
      { 'tables without a collection': 1 },
    ],
    [
      'a table of words of no collection',
      `CREATE VIRTUAL TABLE fts_99 USING fts5(text)`,
      { 'tables without a collection': 1 },
    ],
    ['a table too few', `DROP TABLE vec_1_0`, { 'collections with missing tables': 1 }],
    [
      'what a dropped collection left',
      `INSERT INTO record (collection, id, payload) VALUES (99, 'r', '{}');
       INSERT INTO record_gone (collection, record) VALUES (99, 1);
       INSERT INTO embedder_model VALUES (99, 1, '', x'');
       INSERT INTO vector_space (collection, name, dimension, metric, fitted) VALUES (98, 'default', 3, 'dot', 0);
       CREATE TABLE vec_2_0 (record INTEGER PRIMARY KEY, data BLOB NOT NULL)`,
      {
        'record rows without a collection': 1,
        'record_gone rows without a collection': 1,
        'embedder_model rows without a collection': 1,
        'vector_space rows without a collection': 1,
      },
    ],
    [
      'a space to come that was begun, with its table',
      `UPDATE vector_space SET staging = 1;
       CREATE TABLE vec_1_1 (record INTEGER PRIMARY KEY, data BLOB NOT NULL)`,
      {},
    ],
    [
      'a space to come that was begun, without its table',
      `UPDATE vector_space SET staging = 1`,
      { 'collections with missing tables': 1 },
    ],
    [
      'a vector of a record that is gone in the next generation',
      `UPDATE vector_space SET staging = 1;
       CREATE TABLE vec_1_1 (record INTEGER PRIMARY KEY, data BLOB NOT NULL);
       INSERT INTO vec_1_1 VALUES (99, zeroblob(512))`,
      { 'records without a vector, and vectors without a record': 1 },
    ],
    [
      'a further space without vectors of some records',
      `INSERT INTO vector_space (collection, name, dimension, metric, fitted, generation, vectors)
         VALUES (1, 'sentences', 3, 'dot', 0, 1, 1);
       CREATE TABLE vec_2_1 (record INTEGER PRIMARY KEY, data BLOB NOT NULL);
       INSERT INTO vec_2_1 VALUES (1, zeroblob(12))`,
      {},
    ],
    [
      'vectors for records that are gone, of a space that is gone, and of a wrong length',
      `INSERT INTO carried_vector (record, space, data)
         VALUES (1, 1, zeroblob(512)), (99, 1, zeroblob(512)), (1, 99, zeroblob(512)), (2, 1, zeroblob(4))`,
      { 'carried vectors without a record or a space, or with a wrong length': 3 },
    ],
    [
      'a collection without a default space',
      `UPDATE vector_space SET name = 'x'`,
      { 'damaged collections': 1 },
    ],
    [
      'a record of no document',
      `INSERT INTO record (record, collection, id, payload) VALUES (99, 1, 'r', '{}');
       INSERT INTO vec_1_0 (record, data) VALUES (99, zeroblob(512));
       UPDATE collection SET records = records + 1, payload_bytes = payload_bytes + 2;
       UPDATE vector_space SET vectors = vectors + 1`,
      {},
    ],
    [
      'a record whose title alone is found by words',
      `UPDATE record SET text = NULL, title = coalesce(title, '') || text WHERE record = 1`,
      {},
    ],
    [
      'a size of texts that differs from the records',
      `UPDATE collection SET text_bytes = text_bytes + 1`,
      { 'collections with a wrong count or size': 1 },
    ],
    [
      'a size of postings that differs from the blocks',
      `UPDATE posting_segment SET bytes = bytes + 1 WHERE id = (SELECT min(id) FROM posting_segment)`,
      { 'segments of the posting index with a wrong size': 1 },
    ],
    [
      'a number of documents that differs from the documents',
      `UPDATE document_count SET documents = documents + 1`,
      { 'knowledge bases with a wrong number of documents': 1 },
    ],
    [
      'a number of documents of a knowledge base that is gone',
      `INSERT INTO document_count VALUES ('w', 'gone', 1)`,
      { 'knowledge bases with a wrong number of documents': 1 },
    ],
    [
      'a missing tag of a document, which the document would be listed by',
      `UPDATE documents SET body = json_set(body, '$.visibleTo', json('["*"]')) WHERE ordinal = 1; DELETE FROM documents_tags`,
      { 'documents and jobs with wrong tags': 1 },
    ],
    [
      'a tag of a job that is gone',
      `INSERT INTO jobs_tags VALUES ('w', 'gone', 1)`,
      { 'documents and jobs with wrong tags': 1 },
    ],
    [
      'a collection that was spared when its workspace was deleted',
      `INSERT INTO collection (workspace_id, name, lexical) VALUES ('gone', 'c', 0);
       INSERT INTO vector_space (collection, name, dimension, metric, fitted) VALUES (2, 'default', 3, 'dot', 0);
       CREATE TABLE vec_2_0 (record INTEGER PRIMARY KEY, data BLOB NOT NULL)`,
      {},
    ],
  ])('%s', (_, sql, found) => {
    expect(findings(planted(database => database.exec(sql)))).toEqual(found)
  })

  test('lists at most three examples per finding', () => {
    const gone = 'INSERT INTO record_gone (collection, record) VALUES (99, 1), (99, 2), (99, 3), (99, 4)'
    const path = planted(database => database.exec(gone))
    expect(checkSqliteStore(path)!.checks.filter(({ count }) => count > 0)).toEqual([
      { check: 'record_gone rows without a collection', count: 4, examples: ['99', '99', '99'] },
    ])
  })

  test('a knowledge base without its collection', () => {
    const path = planted(database => {
      database.exec('DELETE FROM collection; DELETE FROM record; DELETE FROM record_gone')
      database.exec('DELETE FROM vector_space; DROP TABLE vec_1_0')
      database.exec('DELETE FROM posting_index; UPDATE posting_segment SET state = 2')
    })
    expect(findings(path)).toEqual({
      'knowledge bases without a collection': 1,
      'documents with a wrong number of chunks': 2,
    })
  })

  test('a collection that is not attached and its chunks are valid', () => {
    const { workspaceId } = sound.base.params
    const path = planted(database => {
      database
        .prepare(
          `INSERT INTO collection (workspace_id, name, lexical, records, payload_bytes) VALUES (?, 'free', 0, 1, 2)`,
        )
        .run(workspaceId)
      database.exec(`INSERT INTO vector_space (collection, name, dimension, metric, fitted, vectors)
          VALUES (2, 'default', 3, 'dot', 0, 1);
        CREATE TABLE vec_2_0 (record INTEGER PRIMARY KEY, data BLOB NOT NULL);
        INSERT INTO record (record, collection, id, document_id, payload) VALUES (99, 2, 'r', 'elsewhere', '{}');
        INSERT INTO vec_2_0 VALUES (99, zeroblob(12))`)
    })
    expect(findings(path)).toEqual({})
  })
})

describe('damage', () => {
  /** Changes bytes of the valid store, bypassing SQLite. */
  function overwritten(change: (bytes: Buffer) => void): string {
    const path = scratchPath()
    const bytes = Buffer.from(sound.bytes)
    change(bytes)
    writeFileSync(path, bytes)
    return path
  }

  /** First byte of the root page of a table or index. */
  function pageOf(name: string): number {
    const database = new Database(planted(() => {}))
    const page = database.prepare('SELECT rootpage FROM sqlite_schema WHERE name = ?').pluck().get(name)
    database.close()
    return (Number(page) - 1) * 4_096
  }

  function damageOf(path: string) {
    const { checks, readable } = checkSqliteStore(path)!
    return { wrong: checks.filter(({ count }) => count > 0), readable }
  }

  test('of a row is reported with its table and number, and with the number of readable rows', () => {
    const path = overwritten(bytes => {
      const at = bytes.indexOf('"sourceFilename":"another.txt"')
      bytes.write('#', at)
    })
    const { wrong, readable } = damageOf(path)
    expect(wrong).toEqual([
      { check: 'damage in the file', count: 1, examples: ['documents: malformed JSON'] },
      { check: 'damaged rows in documents', count: 1, examples: ['row 2: not valid JSON'] },
    ])
    expect(readable).toContainEqual({ table: 'documents', rows: 2, isComplete: false })
    expect(readable).toContainEqual({ table: 'knowledge_bases', rows: 1, isComplete: true })
    expect(readable).toContainEqual({ table: 'record', rows: 3, isComplete: true })
  })

  test('of a field is reported with its name', () => {
    const path = overwritten(bytes => {
      const at = bytes.indexOf('"sourceFilename":"another.txt"')
      bytes.write('"sourceFilename":1234567890123', at)
    })
    expect(damageOf(path).wrong).toContainEqual({
      check: 'damaged rows in documents',
      count: 1,
      examples: [expect.stringMatching(/^row 2: sourceFilename: /)],
    })
  })

  test('of the first page of a table is reported with the table', () => {
    const path = overwritten(bytes => void bytes.fill(0x5a, pageOf('documents'), pageOf('documents') + 4_096))
    const { wrong, readable } = damageOf(path)
    expect(wrong[0]!.examples).toEqual(['documents: database disk image is malformed'])
    expect(wrong).toContainEqual({
      check: 'damaged rows in documents',
      count: 1,
      examples: ['rows on pages that cannot be read'],
    })
    expect(readable).toContainEqual({ table: 'documents', rows: 0, isComplete: false })
    expect(readable).toContainEqual({ table: 'knowledge_bases', rows: 1, isComplete: true })
  })

  test('of an index leaves all rows readable', () => {
    const path = overwritten(
      bytes => void bytes.fill(0, pageOf('documents_key') + 8, pageOf('documents_key') + 4_096),
    )
    const { wrong, readable } = damageOf(path)
    const page = pageOf('documents_key') / 4_096 + 1
    expect(wrong[0]!.examples.join()).toContain(`documents_key (tree ${page}) page ${page}`)
    expect(readable!.every(({ isComplete }) => isComplete)).toBe(true)
  })

  test('of most of the file is reported, even if little can be read', () => {
    const path = overwritten(bytes => void bytes.fill(0x5a, 8_192, 40_000))
    expect(findings(path)['damage in the file']).toBeGreaterThan(0)
  })

  test.each([
    [
      'records with a damaged payload',
      `UPDATE record SET payload = printf('[%*s]', octet_length(payload) - 2, '') WHERE record = 1`,
    ],
    [
      'records with a damaged payload',
      `UPDATE record SET payload = printf('{%*s', octet_length(payload) - 1, '') WHERE record = 1`,
    ],
    ['vectors with a wrong length', `UPDATE vec_1_0 SET data = x'00' WHERE record = 1`],
    [
      'fitted collections without a model',
      `UPDATE vector_space SET generation = 1; ALTER TABLE vec_1_0 RENAME TO vec_1_1`,
    ],
  ])('%s', (check, sql) => {
    expect(findings(planted(database => database.exec(sql)))).toEqual({ [check]: 1 })
  })
})

describe('a file', () => {
  test('that is not a store is reported', () => {
    const path = scratchPath()
    writeFileSync(path, 'something else, and long enough to be read as a page of a database '.repeat(40))
    expect(findings(path)).toEqual({ 'damage in the file': 1 })
  })

  test('that is missing is reported', () => {
    expect(checkSqliteStore(scratchPath())).toBeUndefined()
  })

  test('of an earlier schema is reported with its number and not checked', () => {
    const path = planted(database => database.pragma('user_version = 1'))
    expect(checkSqliteStore(path)).toMatchObject({
      schema: 1,
      checks: [{ check: 'damage in the file', count: 0 }],
    })
  })

  test('that a server is writing is read in a single snapshot', async () => {
    const wb = await open({ server: true })
    const base = await makeBase(wb)
    const path = join(wb.dataDir, 'workbase.db')
    let writing = true
    onTestFinished(() => {
      writing = false
    })
    const writer = (async () => {
      for (let n = 0; writing && n < 200; n++) await base.ingest(`Text number ${n}.`)
    })()
    for (let n = 0; n < 10; n++) {
      expect(findings(path)).toEqual({})
      await new Promise(setImmediate)
    }
    writing = false
    await writer
  })
})
