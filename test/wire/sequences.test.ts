import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Serving, serve } from './harness.ts'

/* A client that uses only routes and bodies with plain `fetch`. Each step depends on the previous ones. */

type Json = Record<string, unknown>

let serving: Serving
let workspace = ''
let base = ''
let document = ''
const made: Record<string, string[]> = {}

beforeAll(async () => {
  serving = await serve()
})
afterAll(async () => {
  expect(await serving.stop()).toBe(0)
})

async function ask(method: string, path: string, body?: Json): Promise<{ status: number; body: unknown }> {
  const answer = await fetch(`${serving.url}/api/v1${path}`, {
    method,
    ...(body && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  })
  const text = await answer.text()
  return { status: answer.status, body: text === '' ? undefined : JSON.parse(text) }
}

function refusal(message: RegExp, code = 'validation_error', status = 400) {
  return { status, body: { error: { code, message: expect.stringMatching(message) } } }
}

test('S1-08: 1. creates a workspace of kind mock without credentials', async () => {
  const { status, body } = await ask('POST', '/workspaces', { kind: 'mock', name: 'sequences' })
  expect({ status, body }).toMatchObject({
    status: 201,
    body: { credentials: {}, keyspace: null, url: null, rlacEnabled: false },
  })
  workspace = `/workspaces/${(body as { workspaceId: string }).workspaceId}`
})

test.each([
  ['embedding', ['mock-embedder']],
  ['chunking', ['recursive-char-1000', 'line-rows-1']],
])('S1-08: 2. lists the %s services of a new workspace in order', async (kind, names) => {
  const { status, body } = await ask('GET', `${workspace}/${kind}-services`)
  const { items, nextCursor } = body as { items: Json[]; nextCursor: unknown }
  expect({ status, names: items.map(({ name }) => name), nextCursor }).toEqual({
    status: 200,
    names,
    nextCursor: null,
  })
  made[kind] = items.map(item => String(item[`${kind}ServiceId`]))
})

test('S1-08: 3. creates a knowledge base with the first service of each kind', async () => {
  const { status, body } = await ask('POST', `${workspace}/knowledge-bases`, {
    name: 'papers',
    embeddingServiceId: made.embedding![0],
    chunkingServiceId: made.chunking![0],
  })
  expect({ status, body }).toMatchObject({
    status: 201,
    body: {
      vectorCollection: 'papers',
      owned: true,
      lexical: { enabled: false, analyzer: null, options: {} },
      astraQueries: [],
    },
  })
  base = `${workspace}/knowledge-bases/${(body as { knowledgeBaseId: string }).knowledgeBaseId}`
})

test('S1-08: 4. registers a document without content', async () => {
  const { status, body } = await ask('POST', `${base}/documents`, {
    sourceFilename: 'a.md',
    metadata: { team: 'red' },
  })
  expect({ status, body }).toMatchObject({
    status: 201,
    body: {
      status: 'pending',
      sourceFilename: 'a.md',
      metadata: { team: 'red' },
      sourceDocId: null,
      fileType: null,
      fileSize: null,
      contentHash: null,
      chunkTotal: null,
      ingestedAt: null,
      errorMessage: null,
      visibleTo: null,
      ownerPrincipalId: null,
    },
  })
  document = `${base}/documents/${(body as { documentId: string }).documentId}`
})

test('S1-08: 5. replaces its metadata completely', async () => {
  const { status, body } = await ask('PATCH', document, { metadata: { year: '1954' } })
  expect({ status, metadata: (body as Json).metadata }).toEqual({ status: 200, metadata: { year: '1954' } })
})

test('S1-08: 6. rejects a search for `query`, without text and vector', async () => {
  expect(await ask('POST', `${base}/search`, { query: 'flutter', topK: 3 })).toMatchObject(
    refusal(/text and vector/),
  )
})

test('S1-08: 7. cannot change the kind of a workspace', async () => {
  expect(await ask('PATCH', workspace, { kind: 'astra' })).toMatchObject(refusal(/kind/))
  expect(await ask('GET', workspace)).toMatchObject({ status: 200, body: { kind: 'mock' } })
})

test('S1-08: 8. rejects a plain token as a credential', async () => {
  const body = { kind: 'mock', name: 'other', credentials: { token: 'AstraCS:plain' } }
  expect(await ask('POST', '/workspaces', body)).toMatchObject(
    refusal(/^credentials\.token: must be a secret reference: env:NAME/),
  )
})

test.each([
  ['chunking', { engine: 'langchain_ts' }],
  ['embedding', { provider: 'mock', modelName: 'm', embeddingDimension: 3 }],
  ['reranking', { provider: 'cohere', modelName: 'm' }],
  ['llm', { provider: 'ollama', modelName: 'm' }],
])('S1-08: 9. returns 404 for a deleted %s service', async (kind, fields) => {
  const { body } = await ask('POST', `${workspace}/${kind}-services`, { name: 'short-lived', ...fields })
  const path = `${workspace}/${kind}-services/${(body as Json)[`${kind}ServiceId`]}`
  expect(await ask('DELETE', path)).toEqual({ status: 204, body: undefined })
  expect(await ask('GET', path)).toMatchObject(refusal(/not found$/, `${kind}_service_not_found`, 404))
})

test('S1-08: 10. stores a chunking service unchanged', async () => {
  const given = { name: 'tokens', engine: 'fixed', strategy: 'by-tokens', chunkUnit: 'tokens' }
  expect(await ask('POST', `${workspace}/chunking-services`, given)).toMatchObject({
    status: 201,
    body: given,
  })
})

test('S1-08 S4.2-28: 11. tests the connection of a mock workspace successfully', async () => {
  expect(await ask('POST', `${workspace}/test-connection`)).toMatchObject({
    status: 200,
    body: { ok: true, kind: 'mock', details: expect.stringMatching(/./) },
  })
})

test('S1-08: 12. deletes the knowledge base and the workspace with an empty response', async () => {
  expect(await ask('DELETE', base)).toEqual({ status: 204, body: undefined })
  expect(await ask('DELETE', workspace)).toEqual({ status: 204, body: undefined })
  expect(await ask('GET', workspace)).toMatchObject({ status: 404 })
})
