import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import type { AnyTable } from '../../src/storage/rows.ts'
import { tables } from '../../src/storage/tables.ts'
import { rowProblem } from '../../src/storage/validated-rows.ts'
import { bodySpecs, uploadRoutes } from '../bad-input/routes.ts'
import { createTestData, type TestData, withPathIds } from '../bad-input/test-data.ts'
import { open, scratchDir, type TestResponse, type TestRuntime } from '../harness/runtime.ts'
import { failedStoreChecks } from '../harness/store-check.ts'
import { openDatabase } from '../harness/store-file.ts'
import { useServer } from '../wire/harness.ts'

const wire = useServer()

let stage: TestData
/** An intact store with rows in every table. */
let intactStore: Buffer
/** Stored bodies of its rows, by table name. */
let bodies: ReadonlyMap<string, readonly string[]>

beforeAll(async () => {
  stage = await createTestData(wire)
  const live = openDatabase(join(wire.serving.dataDir, 'workbase.db'), { readonly: true })
  const bytes = live.serialize()
  live.close()
  // A database in memory has no write-ahead log.
  // @see https://www.sqlite.org/fileformat.html#file_format_version_numbers
  bytes.fill(1, 18, 20)
  const database = openDatabase(bytes)
  for (const [table, row] of Object.entries(rowsWithoutRoutes(stage.own)))
    database.prepare(`INSERT INTO ${table} (version, body) VALUES (1, ?)`).run(JSON.stringify(row))
  bodies = new Map(
    Object.values(tables).map(({ name }) => [
      name,
      database.prepare<[], string>(`SELECT body FROM ${name}`).pluck().all(),
    ]),
  )
  intactStore = database.serialize()
  database.close()
})

/** Returns rows that no route creates without a model, or that do not persist. */
function rowsWithoutRoutes({
  workspaceId,
  knowledgeBaseId,
  conversationId,
  ...ids
}: TestData['own']): object {
  const at = '2026-01-01T00:00:00.000Z'
  const messageId = ids.messageId
  const job = { workspaceId, knowledgeBaseId, jobId: ids.jobId }
  const message = {
    ...{ workspaceId, conversationId, messageId, messageTs: at, role: 'user', content: 'A question.' },
    ...{ tokenCount: null, metadata: {}, authorId: null, toolId: null },
    ...{ toolCallPayload: null, toolResponse: null },
  }
  return {
    messages: message,
    message_versions: {
      ...{ versionId: conversationId, questionId: messageId },
      ...{ ...message, messageId: conversationId, content: 'Another version.' },
    },
    message_images: {
      ...{ workspaceId, conversationId, messageId, imageIndex: 0 },
      ...{ mediaType: 'image/png', data: 'iVBORw0KGgo=', createdAt: at },
    },
    job_inputs: { ...job, body: { text: 'A text for a job.', metadata: {} } },
    job_batches: { ...job, start: 0, source: 'hash', vectors: ['AAAA'] },
    mcp_sign_ins: {
      ...{ workspaceId, mcpServerId: ids.mcpServerId, subject: 'local', createdAt: at, scopes: null },
      ...{ expiresAt: null, canRefresh: true, sealed: 'v2.planted', refreshingUntil: null },
    },
    secret_releases: {
      ...{ releaseId: messageId, ref: 'env:SOME_API_KEY', host: 'api.example.com', workspaceId: null },
      createdAt: at,
    },
    policy_audit: {
      ...{ workspaceId, auditDay: '2026-01-01', ts: at, decisionId: messageId, principalId: null },
      ...{ knowledgeBaseId, resourceId: '*', action: 'list', decision: 'allow', reason: 'planted' },
      compiledFilterJson: null,
    },
    query_log: {
      ...{ workspaceId, knowledgeBaseId, searchId: messageId, at, question: 'planted', caller: null },
      ...{ mode: 'hybrid', reranked: false, hits: 0, score: null, result: null, durationMs: 1 },
    },
    access_versions: {
      ...{ workspaceId, versionId: messageId, kind: 'workspace', targetId: workspaceId, until: at },
      state: { rlacEnabled: false, createdAt: at },
    },
  }
}

/** Creates a data directory whose store has the given bytes. */
function createDataDir(bytes: Buffer): string {
  const dataDir = join(scratchDir(), 'data')
  mkdirSync(dataDir, { mode: 0o700 })
  writeFileSync(join(dataDir, 'workbase.db'), bytes, { mode: 0o600 })
  return dataDir
}

/** Opens a server runtime whose store has the given bytes. */
function openStoreFrom(bytes: Buffer): Promise<TestRuntime> {
  return open({ dataDir: createDataDir(bytes), server: true })
}

/** Returns the failed checks of `wb doctor --deep` for a store with the given bytes. */
async function failedChecks(bytes: Buffer): Promise<string[]> {
  try {
    return (await failedStoreChecks(createDataDir(bytes))).map(({ check }) => check)
  } catch (error) {
    expect(error).toMatchObject({ code: 'control_plane_unavailable' })
    return [(error as Error).message]
  }
}

/** Kinds of damage to a stored row that bypass all validation. */
const damages: readonly ((body: string) => string)[] = [
  body => `[${body.slice(1)}`,
  body =>
    body.replace(/:("(?:[^"\\]|\\.)*")/g, (_, text: string) => `:${'1'.repeat(Buffer.byteLength(text))}`),
  () => '{}',
  () => '[]',
]

/** Returns the intact store with damage in all rows of one table, alternating the kind of damage. */
function damageTable(table: string): Buffer {
  const bytes = Buffer.from(intactStore)
  for (const [n, body] of bodies.get(table)!.entries()) {
    const at = bytes.indexOf(body)
    expect(at, `${body.slice(0, 60)} lies on one page`).toBeGreaterThan(0)
    bytes.write(damages[n % damages.length]!(body).padEnd(Buffer.byteLength(body)), at)
  }
  return bytes
}

interface Request {
  readonly line: string
  readonly json?: unknown
}

const methods = ['GET', 'POST', 'PATCH', 'DELETE']
const methodOf = (route: string) => methods.indexOf(route.split(' ')[0]!)

/** Returns a valid request for each route below a workspace. Deletions come last. */
function requests(): Request[] {
  return stage.routes
    .filter(route => /\{workspaceId\}|\/readyz|\/setup-status/.test(route))
    .filter(route => !/\/mcp$|\/tools$/.test(route) && !uploadRoutes.includes(route))
    .sort((one, other) => methodOf(one) - methodOf(other))
    .map(route => ({ line: withPathIds(route, stage.own), json: bodySpecs[route]?.valid }))
}

/** Returns the problem with a response from a damaged store; undefined if the response is correct. */
function problemWith({ status, body, text }: TestResponse): string | undefined {
  if (text.includes('"code":"internal_error"')) return 'a defect'
  const { code, hint } = (body.error ?? {}) as { code?: string; hint?: string }
  if (code !== 'control_plane_unavailable') return undefined
  return status === 503 && hint?.includes('wb doctor --deep') ? undefined : `${status}, without the hint`
}

async function problemsWith(
  wb: TestRuntime,
  sent: readonly Request[],
): Promise<{ wrong: string[]; told: number }> {
  const wrong: string[] = []
  let reported = 0
  for (const { line, json } of sent) {
    const answer = await wb.send(line, json)
    const fault = problemWith(answer)
    if (fault) wrong.push(`${line}: ${fault}: ${answer.text.slice(0, 200)}`)
    if (answer.text.includes('the store is damaged')) reported++
  }
  return { wrong, told: reported }
}

/** Opens a runtime, or returns undefined if the store is too damaged to open and the error says so. */
async function tryOpen(bytes: Buffer): Promise<TestRuntime | undefined> {
  try {
    return await openStoreFrom(bytes)
  } catch (error) {
    expect(error).toMatchObject({
      code: 'control_plane_unavailable',
      hint: expect.stringContaining('--deep'),
    })
    return undefined
  }
}

test('an intact store has rows in every table, and none is reported as damaged', async () => {
  for (const [table, rows] of bodies) expect(rows.length, table).toBeGreaterThan(0)
  expect(await problemsWith(await openStoreFrom(intactStore), requests())).toEqual({ wrong: [], told: 0 })
})

describe.each(Object.values(tables))('damaged rows of $name', ({ name }) => {
  test('cause no internal error on any route, at startup, or in wb doctor', async () => {
    const bytes = damageTable(name)
    // SQLite itself compares stored computed columns with the body.
    const hasStoredColumns = name === 'message_images' || name === 'deleted_chunks'
    expect(await failedChecks(bytes)).toContain(
      hasStoredColumns ? 'damage in the file' : `damaged rows in ${name}`,
    )
    const wb = await tryOpen(bytes)
    if (wb) expect((await problemsWith(wb, requests())).wrong).toEqual([])
  })

  test('are detected by a field of another type', () => {
    const table = { name } as AnyTable
    for (const body of bodies.get(name)!) {
      const row = JSON.parse(body) as Record<string, unknown>
      expect(rowProblem(table, row)).toBeUndefined()
      for (const field of Object.keys(row)) {
        const wrong = [7, [], 'text', { of: 'another kind' }].map(other =>
          rowProblem(table, { ...row, [field]: other }),
        )
        expect(wrong, field).toContainEqual(expect.stringContaining(field))
      }
    }
  })
})

test('wb doctor names the damaged row', async () => {
  const wb = await openStoreFrom(damageTable('agents'))
  const { workspaceId, agentId } = stage.own
  const answer = await wb.send(`GET /api/v1/workspaces/${workspaceId}/agents/${agentId}`)
  expect(answer.body.error).toMatchObject({
    code: 'control_plane_unavailable',
    message: expect.stringMatching(/^the store is damaged: row \d of agents cannot be read$/),
    hint: expect.stringMatching(/^Run wb doctor --deep /),
  })
})

/** Returns the intact store after running SQL on it. */
function runSql(sql: string): Buffer {
  const database = openDatabase(intactStore)
  database.exec(sql)
  const bytes = database.serialize()
  database.close()
  return bytes
}

/** Returns requests that read rows and content, and requests that add to it. */
const readingOrAdding = () =>
  requests().filter(({ line }) => line.startsWith('GET ') || /(?:search|ingest|records)$/.test(line))

test.each([
  ['a payload that is not JSON', `UPDATE record SET payload = '{"kept'`],
  ['a payload that is a list', `UPDATE record SET payload = '[]'`],
  ['a vector that is too short', `UPDATE vec_1_0 SET data = x'0011'`],
  ['a vector that is text', `UPDATE vec_1_0 SET data = 'vector'`],
  ['a collection without a dimension', `UPDATE vector_space SET dimension = 0`],
  ['a collection with an unknown metric', `UPDATE vector_space SET metric = 'odd'`],
  [
    'a fitted space without its model',
    `UPDATE vector_space SET generation = 1 WHERE fitted = 1;
    ALTER TABLE vec_2_0 RENAME TO vec_2_1`,
  ],
  [
    'a fitted space with half of its model',
    `UPDATE vector_space SET generation = 1 WHERE fitted = 1;
    ALTER TABLE vec_2_0 RENAME TO vec_2_1;
    INSERT INTO embedder_model (collection, generation, terms, weights) VALUES (2, 1, 'one' || char(10) || 'two', x'00')`,
  ],
  ['a collection without its table of vectors', `DROP TABLE vec_1_0`],
  ['a collection without its index of words', `DELETE FROM posting_slots`],
  ['a lost index', `DROP INDEX documents_byKnowledgeBase`],
  ['a lost table', `DROP TABLE documents`],
  ['a knowledge base without its embedding service', `DELETE FROM embedding_services`],
  ['a knowledge base without its chunking service', `DELETE FROM chunking_services`],
])('%s is reported as damage', async (_, sql) => {
  const intact = await failedChecks(intactStore)
  const damage = (await failedChecks(runSql(sql))).filter(name => !intact.includes(name))
  expect(damage).not.toEqual([])
  const found = await problemsWith(await openStoreFrom(runSql(sql)), readingOrAdding())
  expect(found.wrong).toEqual([])
  expect(found.told).toBeGreaterThan(0)
})

test('overwritten pages cause no internal error on any route', async () => {
  const pageBytes = 4_096
  let reported = 0
  // Testing every page would take a minute.
  for (let page = 1; page < intactStore.length / pageBytes; page += 7) {
    const bytes = Buffer.from(intactStore)
    bytes.fill(page % 2 ? 0x5a : 0, page * pageBytes, (page + 1) * pageBytes)
    const named = await failedChecks(bytes)
    const wb = await tryOpen(bytes)
    if (!wb) continue
    const found = await problemsWith(wb, readingOrAdding())
    expect(found.wrong, `page ${page + 1}`).toEqual([])
    if (found.told > 0) expect(named, `page ${page + 1}`).toContain('damage in the file')
    reported += found.told
    await wb.close()
  }
  expect(reported).toBeGreaterThan(0)
})
