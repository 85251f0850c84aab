import { randomUUID } from 'node:crypto'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { kb } from '../../src/contract/knowledge.ts'
import { rerankingServices } from '../../src/contract/services.ts'
import { type RerankServer, type RerankStep, startRerankServer } from '../fakes/rerank-server.ts'
import { makeRerankedBase, question, searchTexts, showProblem } from '../harness/reranked-base.ts'
import type { Base } from '../harness/resources.ts'
import { open, TestClock, type TestRuntime, waitUntil } from '../harness/runtime.ts'

let provider: RerankServer
let wb: TestRuntime
beforeEach(async () => {
  // Prefers passages that words and vectors do not.
  provider = await startRerankServer(passage => (passage.includes('alone') ? 0.9 : 1 / passage.length))
  onTestFinished(() => provider.close())
  wb = await open({
    environment: { RERANK_KEY: 'sk-rerank' },
    config: { runtime: { secretRefs: { allow: [{ ref: 'env:RERANK_KEY', hosts: [provider.host] }] } } },
  })
})

/** A knowledge base with a reranking service at the fake provider. */
const baseWithService = (service: object = {}) =>
  makeRerankedBase(wb, {
    provider: 'cohere',
    modelName: 'rerank-v3.5',
    endpointBaseUrl: provider.url,
    credentialRef: 'env:RERANK_KEY',
    ...service,
  })

describe('a bound service reranks', () => {
  test.each([
    [
      'cohere',
      '/v1/rerank',
      { model: 'rerank-v3.5', query: question, documents: expect.any(Array), top_n: 4 },
    ],
    ['tei', '/v1/rerank', { query: question, texts: expect.any(Array), truncate: true }],
  ])('with the protocol of %s', async (protocol, url, body) => {
    const base = await baseWithService({ provider: protocol })
    const plain = await searchTexts(wb, base, { rerank: false })
    expect(provider.received).toEqual([])
    const reranked = await searchTexts(wb, base)
    expect(provider.received).toHaveLength(1)
    expect(provider.received[0]).toMatchObject({ url, body, headers: { authorization: 'Bearer sk-rerank' } })
    const [first, ...others] = reranked.texts
    expect(first).toBe('the wing alone')
    expect(others).toEqual(others.toSorted((a, b) => a.length - b.length))
    expect(reranked.texts).not.toEqual(plain.texts)
    expect(reranked.scores).toEqual(plain.scores)
    expect(reranked.ignored).toBeNull()
  })

  test.each([{}, { hybrid: false }, { lexicalWeight: 1 }, { rerank: true, prefix: true }])(
    'in searches with %o',
    async fields => {
      const base = await baseWithService()
      expect((await searchTexts(wb, base, fields)).texts[0]).toBe('the wing alone')
    },
  )

  test('brings a passage that was not among the first hits to the front', async () => {
    const base = await baseWithService()
    expect((await searchTexts(wb, base, { topK: 1 })).texts).toEqual(['the wing alone'])
  })

  test('and explanations and why-not use its order', async () => {
    const base = await baseWithService()
    const params = base.params
    const hits = await base.search(question, { explain: true })
    const moved = hits.find(({ payload }) => payload!.chunkText === 'the wing alone')!
    expect(moved.explanation!.rerank!.to).toBe(1)
    expect(moved.explanation!.rerank!.from).toBeGreaterThan(1)
    const documentId = String(moved.payload!.documentId)
    const body = { text: question, documentId, topK: 1 }
    expect(await wb.call(kb.whyNot, { params, body })).toMatchObject({ stage: 'found', rank: 1 })
    const unranked = await wb.call(kb.whyNot, { params, body: { ...body, rerank: false } })
    expect(unranked).toMatchObject({
      stage: 'topK',
      rank: moved.explanation!.rerank!.from,
      rerank: null,
    })
    const below = hits.at(-1)!
    const lowered = { text: question, documentId: String(below.payload!.documentId), topK: 1 }
    const { rerank } = below.explanation!
    expect(await wb.call(kb.whyNot, { params, body: lowered })).toMatchObject({ stage: 'topK', rerank })
    expect(rerank).toMatchObject({ to: hits.length, service: 'reranker' })
  })

  test('sends the candidates in batches, and at most maxCandidates', async () => {
    const base = await baseWithService({ maxBatchSize: 1, maxCandidates: 3 })
    const { texts: found } = await searchTexts(wb, base, { rerank: true })
    expect(provider.received.map(({ body }) => body.documents!.length)).toEqual([1, 1, 1])
    expect(found).toHaveLength(4)
  })

  test('in a search of several knowledge bases, each with its own service', async () => {
    const base = await baseWithService()
    const { workspaceId } = base.params
    const { body: other } = await wb.send(`POST /api/v1/workspaces/${workspaceId}/knowledge-bases`, {
      name: 'other',
    })
    const path = `/api/v1/workspaces/${workspaceId}`
    await wb.send(`POST ${path}/knowledge-bases/${other.knowledgeBaseId}/ingest`, {
      text: 'a secret flutter',
    })
    const { body } = await wb.send(`POST ${path}/search`, { text: question })
    const hits = body as unknown as { knowledgeBaseId: string; payload: { chunkText: string } }[]
    const own = hits.filter(hit => hit.knowledgeBaseId === base.params.knowledgeBaseId)
    expect(own[0]!.payload.chunkText).toBe('the wing alone')
    expect(body).toHaveLength(5)
    const sent = provider.received.flatMap(request => request.body.documents)
    expect(sent).toHaveLength(4)
    expect(sent).not.toContain('a secret flutter')
  })
})

test('a search while a user types does not call the service', async () => {
  const base = await baseWithService()
  expect((await searchTexts(wb, base, { prefix: true })).ignored).toBe('rerank')
  expect(provider.received).toEqual([])
})

test('the service receives only passages that the caller may see', async () => {
  const made = await wb.send('POST /api/v1/workspaces', { name: 'w', kind: 'local', rlacEnabled: true })
  const workspace = `/api/v1/workspaces/${made.body.workspaceId}`
  const as = (principal: string) => (line: string, body?: unknown) =>
    wb.send(line, body, { 'x-view-as-principal': principal })
  await wb.send(`POST ${workspace}/principals`, { principalId: 'root', role: 'admin' })
  const service = { name: 'r', provider: 'cohere', modelName: 'm', endpointBaseUrl: provider.url }
  const { body: reranker } = await wb.send(`POST ${workspace}/reranking-services`, service)
  const { rerankingServiceId } = reranker
  const { body: base } = await wb.send(`POST ${workspace}/knowledge-bases`, {
    name: 'kb',
    rerankingServiceId,
  })
  const path = `${workspace}/knowledge-bases/${base.knowledgeBaseId}`
  for (const name of ['alice', 'bob'])
    await as('root')(`POST ${path}/ingest`, { text: `a wing flutter of ${name}`, visibleTo: [name] })
  const { body } = await as('alice')(`POST ${path}/search`, { text: question })
  expect(body).toHaveLength(1)
  expect(provider.received.map(request => request.body.documents)).toEqual([['a wing flutter of alice']])
  expect(provider.received[0]!.headers.authorization).toBeUndefined()
})

const bad: [string, RerankStep][] = [
  ['is overloaded', { status: 429, headers: { 'retry-after': '0' } }],
  ['fails', { status: 500, body: '{"message": "out of memory"}' }],
  ['redirects', { status: 302, headers: { location: 'http://127.0.0.1:1/elsewhere' } }],
  ['does not answer', { hangs: true }],
  ['sends truncated JSON', { body: '{"results": [{"index": 0, "relevance' }],
  [
    'sends a response of megabytes',
    { body: JSON.stringify({ results: [], padding: 'x'.repeat(1_000_000) }) },
  ],
  ['sends something else', { body: '{"results": "none"}' }],
  ['omits a passage', { change: entries => entries.slice(1) }],
  ['scores a passage twice', { change: ([first, , ...rest]) => [first, first, ...rest] }],
  ['scores a passage that does not exist', { change: ([, ...rest]) => [{ index: 4, score: 1 }, ...rest] }],
  ['sends a negative index', { change: ([, ...rest]) => [{ index: -1, score: 1 }, ...rest] }],
  ['sends an index as text', { change: ([, ...rest]) => [{ index: '0', score: 1 }, ...rest] }],
  [
    'sends a score that is no number',
    { change: entries => entries.map(({ index }) => ({ index, score: null })) },
  ],
]

test.each(bad)(
  'if the service %s, hits keep their order, and rerank is named as ignored',
  async (_, step) => {
    const base = await baseWithService({ requestTimeoutMs: 200 })
    const plain = await searchTexts(wb, base, { rerank: false })
    provider.script(step)
    const { ignored, ...hits } = await searchTexts(wb, base, { rerank: true })
    expect(hits).toEqual({ texts: plain.texts, scores: plain.scores })
    expect(ignored).toBe('rerank')
    expect(provider.received).toHaveLength(1)
  },
)

test.each([
  ['a provider that the runtime cannot call', { provider: 'nobody' }],
  ['a secret that is not released for the host', { credentialRef: 'env:OTHER_KEY' }],
  ['no address for a protocol without a default one', { provider: 'tei', endpointBaseUrl: null }],
])('a service with %s is not called', async (_, service) => {
  const base = await baseWithService(service)
  expect((await searchTexts(wb, base)).ignored).toBe('rerank')
  expect(provider.received).toEqual([])
})

test('at most 16 searches of a workspace wait for a service, and others are not reranked', async () => {
  const base = await baseWithService({ requestTimeoutMs: 2_000 })
  provider.script(...Array.from({ length: 20 }, () => ({ hangs: true })))
  const waiting = Array.from({ length: 16 }, () => searchTexts(wb, base))
  await waitUntil(() => provider.received.length === 16)
  expect((await searchTexts(wb, base)).ignored).toBe('rerank')
  expect(provider.received).toHaveLength(16)
  await Promise.all(waiting)
})

test('a search that returns from a service does not call providers of new knowledge bases', async () => {
  const base = await baseWithService({ requestTimeoutMs: 2_000 })
  const workspace = `/api/v1/workspaces/${base.params.workspaceId}`
  provider.script({ hangs: true })
  const searching = wb.send(`POST ${workspace}/search`, { text: question })
  await waitUntil(() => provider.received.length === 1)
  const { body: service } = await wb.send(`POST ${workspace}/embedding-services`, {
    name: 'hosted',
    provider: 'openai',
    modelName: 'm',
    embeddingDimension: 3,
    endpointBaseUrl: provider.url,
  })
  const { embeddingServiceId } = service
  const made = await wb.send(`POST ${workspace}/knowledge-bases`, { name: 'new', embeddingServiceId })
  expect(made.status).toBe(201)
  expect((await searching).status).toBe(200)
  expect(provider.received.map(({ url }) => url)).toEqual(['/v1/rerank'])
})

describe('a service that hangs is skipped', () => {
  let clock: TestClock
  let base: Base
  beforeEach(async () => {
    clock = new TestClock()
    wb = await open({ clock })
    base = await baseWithService({ credentialRef: null })
    for (let count = 0; count < 3; count++) await searchUntilTimeout()
  })

  /** Searches while the service hangs, until the time limit. */
  async function searchUntilTimeout(): Promise<void> {
    const before = provider.received.length
    provider.script({ hangs: true })
    const searching = searchTexts(wb, base)
    await waitUntil(() => provider.received.length === before + 1)
    clock.advance(2_000)
    expect((await searching).ignored).toBe('rerank')
  }

  /** Searches several times at once. Returns how many requests the service received. */
  async function countRequests(searches: number): Promise<number> {
    const before = provider.received.length
    await Promise.all(Array.from({ length: searches }, () => searchTexts(wb, base)))
    return provider.received.length - before
  }

  test('for 30 seconds, and the answer and the service say so', async () => {
    clock.advance(29_000)
    expect((await searchTexts(wb, base)).ignored).toBe('rerank')
    expect(provider.received).toHaveLength(3)
    expect((await showProblem(wb, base))!.message).toMatch(/^is paused/)
    clock.advance(1_000)
    expect((await searchTexts(wb, base)).ignored).toBeNull()
    expect(await showProblem(wb, base)).toBeNull()
    expect(await countRequests(4)).toBe(4)
  })

  test('and then called by one search at a time until it responds', async () => {
    clock.advance(30_000)
    provider.script({ hangs: true })
    const trying = searchTexts(wb, base)
    await waitUntil(() => provider.received.length === 4)
    expect(await countRequests(3)).toBe(0)
    clock.advance(2_000)
    await trying
    expect(await countRequests(3)).toBe(0)
    clock.advance(30_000)
    expect(await countRequests(1)).toBe(1)
    expect(await countRequests(3)).toBe(3)
  })

  test('and then called by the next search if the first one is canceled', async () => {
    clock.advance(30_000)
    provider.script({ hangs: true })
    const reader = new AbortController()
    const canceled = wb.runtime.fetch(
      new Request(`http://localhost${base.path}/search`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ text: question }),
        signal: reader.signal,
      }),
    )
    await waitUntil(() => provider.received.length === 4)
    reader.abort()
    await canceled.catch(() => {})
    expect((await searchTexts(wb, base)).ignored).toBeNull()
    expect(await countRequests(3)).toBe(3)
  })

  test('only in its workspace', async () => {
    const rerankingServiceId = randomUUID()
    const [paused, other] = [
      await baseWithService({ credentialRef: null, rerankingServiceId }),
      await baseWithService({ credentialRef: null, rerankingServiceId }),
    ]
    base = paused
    for (let count = 0; count < 3; count++) await searchUntilTimeout()
    expect((await searchTexts(wb, paused)).ignored).toBe('rerank')
    expect((await searchTexts(wb, other)).ignored).toBeNull()
  })

  test('until it is changed', async () => {
    const { workspaceId } = base.params
    const rerankingServiceId = (await base.show()).rerankingServiceId!
    await wb.call(rerankingServices.update, {
      params: { workspaceId, rerankingServiceId },
      body: { requestTimeoutMs: 3_000 },
    })
    expect((await searchTexts(wb, base)).ignored).toBeNull()
  })

  test('only after three timeouts in a row', async () => {
    clock.advance(30_000)
    await searchTexts(wb, base)
    await searchUntilTimeout()
    await searchUntilTimeout()
    provider.script({ status: 500 })
    await searchTexts(wb, base)
    await searchUntilTimeout()
    await searchUntilTimeout()
    expect((await searchTexts(wb, base)).ignored).toBeNull()
  })
})
