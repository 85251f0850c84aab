import { randomUUID } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import type { LoggedSearch, QueryInsights } from '../../src/contract/insights.ts'
import { kb } from '../../src/contract/knowledge.ts'
import { limits } from '../../src/contract/limits.ts'
import { workspaces } from '../../src/contract/workspaces.ts'
import { fairShare } from '../../src/knowledge/limits-by-workspace.ts'
import { openEmbeddedStore } from '../../src/storage/open.ts'
import type { RowStore } from '../../src/storage/rows.ts'
import { tables } from '../../src/storage/tables.ts'
import { callMcpTool, type Send } from '../access/principal-requests.ts'
import {
  createAgent,
  ingest,
  openRestrictedWorkspace,
  type RestrictedWorkspace,
} from '../access/restricted-workspace.ts'
import { fakeSentenceModel } from '../fakes/sentence-model.ts'
import { type Base, makeBase, makeMockService } from '../harness/resources.ts'
import { open, TestClock, type TestRuntime, type TestRuntimeOptions, waitUntil } from '../harness/runtime.ts'

/** A knowledge base about keys whose query log is on. */
async function openLogged(options: TestRuntimeOptions = {}) {
  const clock = new TestClock()
  const wb = await open({ clock, sentenceModel: fakeSentenceModel(['revoke', 'withdraw']), ...options })
  const base = await makeBase(wb)
  await base.ingest('Revoke a key, and revoke its keys, to revoke a key.')
  await wb.settle()
  await turnOn(wb, base)
  return { wb, base, clock }
}

function turnOn(wb: TestRuntime, { params }: Base) {
  return wb.call(kb.update, { params, body: { queryLog: true } })
}

function insightsOf(wb: TestRuntime, { params }: Base, query: { since?: string; limit?: number } = {}) {
  return wb.call(kb.insights, { params, query })
}

/** Returns the stored searches, oldest first. */
async function storedSearches({ dataDir }: TestRuntime): Promise<LoggedSearch[]> {
  const { rows, close } = await openEmbeddedStore({ path: `${dataDir}/workbase.db` })
  const found = await rows.list(tables.queryLog, { index: 'byOrdinal', prefix: [], limit: 1_000 })
  await close()
  return found.map(({ row }) => row)
}

const questionsOf = (list: QueryInsights['slow' | 'repeated' | 'unanswered']) =>
  list.map(({ question, searches }) => [question, searches])

describe('a search is recorded', () => {
  test('only after the query log was turned on, and until it is turned off', async () => {
    const wb = await open()
    const base = await makeBase(wb)
    await base.search('before')
    expect(await insightsOf(wb, base)).toMatchObject({ queryLog: false, searches: 0, duration: null })
    await turnOn(wb, base)
    await base.search('during')
    await wb.call(kb.update, { params: base.params, body: { queryLog: false } })
    await base.search('after')
    const { queryLog, slow } = await insightsOf(wb, base)
    expect([queryLog, questionsOf(slow)]).toEqual([false, [['during', 1]]])
  })

  test('with its question and figures, and without text of passages', async () => {
    const { wb, base, clock } = await openLogged()
    await base.search(`revoke ${'x'.repeat(600)}`, { rerank: true })
    await insightsOf(wb, base)
    const [row] = await storedSearches(wb)
    expect(row).toEqual({
      ...base.params,
      searchId: expect.any(String),
      at: new Date(clock.now()).toISOString(),
      question: `revoke ${'x'.repeat(493)}`,
      caller: null,
      mode: 'hybrid_rerank',
      reranked: true,
      hits: 1,
      score: expect.any(Number),
      result: { hits: 1, coverage: expect.any(Number), similarity: expect.any(Number) },
      durationMs: expect.any(Number),
    })
  })

  test('unless it has no text, is still being typed, or is repeated at once', async () => {
    const { wb, base, clock } = await openLogged()
    await base.search('rev', { prefix: true })
    const { workspaceId } = base.params
    const { embeddingServiceId } = await makeMockService(wb, workspaceId)
    const vectors = await makeBase(wb, { workspaceId, embeddingServiceId })
    await turnOn(wb, vectors)
    await wb.call(kb.search, { params: vectors.params, body: { vector: [1, 0, 0] } })
    expect((await insightsOf(wb, vectors)).searches).toBe(0)
    for (let n = 0; n < 3; n++) await base.search('revoke')
    clock.advance(2_000)
    await base.search('revoke')
    expect(questionsOf((await insightsOf(wb, base)).slow)).toEqual([['revoke', 2]])
  })

  test('in each searched knowledge base whose query log is on', async () => {
    const { wb, base } = await openLogged()
    const { workspaceId } = base.params
    const [other, unlogged] = [await makeBase(wb, { workspaceId }), await makeBase(wb, { workspaceId })]
    await turnOn(wb, other)
    await wb.call(kb.searchMany, { params: { workspaceId }, body: { text: 'revoke' } })
    expect((await insightsOf(wb, base)).searches).toBe(1)
    expect(await insightsOf(wb, other)).toMatchObject({ searches: 1, withoutGoodResults: 0 })
    expect((await insightsOf(wb, unlogged)).searches).toBe(0)
  })

  test('of agents and MCP clients', async () => {
    const opened = await openRestrictedWorkspace({ config: { mcp: { exposeChat: true } } })
    const { base, workspace, knowledgeBaseId, operator, as } = opened
    await operator(`PATCH ${base}`, { queryLog: true })
    const alice = as('alice')
    const agent = await createAgent(opened)
    const call = { name: 'search_kb', arguments: { query: 'What does the agent find?' } }
    agent.model.script({ toolCalls: [call] }, { text: 'No idea.' })
    const path = await agent.startConversation(alice)
    await alice(`POST ${path}/messages`, { content: 'Find something.' })
    await callMcpTool(alice, workspace, 'search_kb', { knowledgeBaseId, text: 'What does MCP find?' })
    const { slow } = (await operator(`GET ${base}/insights`)).body as unknown as QueryInsights
    expect(slow.map(({ question }) => question).sort()).toEqual([
      'What does MCP find?',
      'What does the agent find?',
    ])
  })
})

describe('recording', () => {
  /** A runtime whose query log is slow or broken. */
  async function openWithLog(
    write: (rows: RowStore, writes: Parameters<RowStore['atomic']>[0]) => ReturnType<RowStore['atomic']>,
  ) {
    return openLogged({
      rows: store => ({
        ...store,
        atomic: writes =>
          writes.some(({ op, table }) => op === 'insert' && table.name === tables.queryLog.name)
            ? write(store, writes)
            : store.atomic(writes),
      }),
    })
  }

  test('never makes a search wait, or fail', async () => {
    let release = () => {}
    const isReleased = new Promise<void>(resolve => {
      release = resolve
    })
    const { wb, base, clock } = await openWithLog(async (rows, writes) => {
      await isReleased
      return rows.atomic(writes)
    })
    for (let n = 0; n < 150; n++) expect(await base.search(`revoke ${n}`)).toHaveLength(1)
    clock.advance(1_000)
    expect(await storedSearches(wb)).toEqual([])
    release()
    expect((await insightsOf(wb, base)).searches).toBe(150)
  })

  test('reports searches that could not be recorded in the log', async () => {
    const { wb, base } = await openWithLog(() => Promise.reject(new Error('disk full')))
    expect(await base.search('revoke')).toHaveLength(1)
    expect((await insightsOf(wb, base)).searches).toBe(0)
    expect(wb.loggedProblems).toMatchObject([{ message: 'searches were not recorded', facts: { lost: 1 } }])
  })

  test('stores a search within a second, so that a crash loses only the last second', async () => {
    const { wb, base, clock } = await openLogged()
    await base.search('revoke')
    await new Promise(setImmediate)
    clock.advance(1_000)
    await waitUntil(async () => (await storedSearches(wb)).length === 1)
  })

  test('keeps the searches of a workspace if another one has too many', async () => {
    const config = { runtime: { queryLog: { searchesMax: 1_000 } } }
    const { wb, base, clock } = await openLogged({ config, server: true })
    const other = await makeBase(wb)
    await turnOn(wb, other)
    await base.search('revoke')
    for (let n = 0; n < 1_010; n++) await other.search(`x${n}`, { lexicalWeight: 1 })
    expect((await insightsOf(wb, other)).searches).toBe(1_010)
    clock.advance(3_600_000)
    await waitUntil(async () => (await insightsOf(wb, other)).searches === 999)
    expect((await insightsOf(wb, base)).searches).toBe(1)
  })

  test('deletes searches after their days, and above their number', async () => {
    const config = { runtime: { queryLog: { retentionDays: 2, searchesMax: 1_000 } } }
    const { wb, base, clock } = await openLogged({ config, server: true })
    const count = async () => (await insightsOf(wb, base, { since: '2000-01-01T00:00:00Z' })).searches
    for (let n = 0; n < 1_010; n++) await base.search(`x${n}`, { lexicalWeight: 1 })
    expect(await count()).toBe(1_010)
    clock.advance(3_600_000)
    await waitUntil(async () => (await count()) === 1_000)
    clock.advance(2 * 86_400_000)
    await waitUntil(async () => (await count()) === 0)
  })
})

test.each([
  [[5, 3], 10, 10],
  [[90, 10], 50, 40],
  [[90, 80, 10], 50, 20],
  [[90, 80, 70], 50, 16],
  [[], 50, 50],
])('of %j searches and a total of %i, a workspace keeps at most %i', (counts, total, share) => {
  expect(fairShare(counts, total)).toBe(share)
})

describe('insights show', () => {
  test('questions without passages, and with passages that match neither words nor meaning', async () => {
    const { wb, base } = await openLogged()
    for (const text of ['revoke a key', 'withdraw', 'apple pie', '"apple pie"']) await base.search(text)
    const { unanswered, withoutGoodResults, days } = await insightsOf(wb, base)
    expect(unanswered).toMatchObject([
      { question: '"apple pie"', hits: 0 },
      { question: 'apple pie', hits: 1, coverage: 0, similarity: expect.any(Number) },
    ])
    expect(withoutGoodResults).toBe(2)
    expect(days).toMatchObject([{ searches: 4, withoutGoodResults: 2 }])
  })

  test('repeated questions, by day and in a period', async () => {
    const { wb, base, clock } = await openLogged()
    const day = () => new Date(clock.now()).toISOString().slice(0, 10)
    await base.search('How do I revoke a key?')
    const first = day()
    clock.advance(86_400_000)
    const since = new Date(clock.now()).toISOString()
    await base.search('  how do I  REVOKE a key')
    await base.search('another question')
    const all = await insightsOf(wb, base)
    expect(all.days.map(({ day: date, searches }) => [date, searches])).toEqual([
      [first, 1],
      [day(), 2],
    ])
    expect(questionsOf(all.repeated)).toEqual([['  how do I  REVOKE a key', 2]])
    expect(await insightsOf(wb, base, { since })).toMatchObject({ searches: 2, repeated: [], complete: true })
    expect((await insightsOf(wb, base, { limit: 1 })).slow).toHaveLength(1)
  })

  test('slow questions, and percentiles of the times', async () => {
    const { wb, base } = await openLogged()
    for (const text of ['a first', 'a second', 'a third']) await base.search(text)
    const { duration, slow } = await insightsOf(wb, base)
    const times = (await storedSearches(wb)).map(({ durationMs }) => durationMs).sort((a, b) => b - a)
    expect(slow.map(({ maxMs }) => maxMs)).toEqual(times)
    expect(duration).toEqual({ p50Ms: times[1], p95Ms: times[0], maxMs: times[0] })
  })
})

describe('recorded searches are deleted', () => {
  test('by a request, which is in the audit trail', async () => {
    const { wb, base } = await openLogged()
    const other = await makeBase(wb, { workspaceId: base.params.workspaceId })
    await turnOn(wb, other)
    await base.search('revoke')
    await other.search('revoke')
    await wb.call(kb.clearInsights, { params: base.params })
    expect([(await insightsOf(wb, base)).searches, (await insightsOf(wb, other)).searches]).toEqual([0, 1])
    const { body } = await wb.send(`GET /api/v1/workspaces/${base.params.workspaceId}/audit?limit=1`)
    expect(body.items).toMatchObject([
      { action: 'kb.clear_query_log', details: { count: 1, label: base.name } },
    ])
  })

  test('with their knowledge base, and with their workspace', async () => {
    const { wb, base } = await openLogged()
    const { workspaceId } = base.params
    const other = await makeBase(wb, { workspaceId })
    await turnOn(wb, other)
    await base.search('revoke')
    await other.search('revoke')
    await base.delete()
    expect((await storedSearches(wb)).map(({ knowledgeBaseId }) => knowledgeBaseId)).toEqual([
      other.params.knowledgeBaseId,
    ])
    await wb.call(workspaces.delete, { params: { workspaceId } })
    expect(await storedSearches(wb)).toEqual([])
  })
})

test('security: knowledge bases with the same ID in two workspaces share nothing', async () => {
  const { wb, base } = await openLogged()
  const { knowledgeBaseId } = base.params
  const other = await makeBase(wb, { knowledgeBaseId })
  await turnOn(wb, other)
  for (const text of ['revoke', 'withdraw']) await base.search(text)
  await other.search('revoke')
  const counts = async (of: Base) => [
    (await insightsOf(wb, of)).searches,
    (await wb.call(kb.stats, { params: of.params })).searches.map(({ count }) => count),
  ]
  expect(await counts(base)).toEqual([2, [2]])
  expect(await counts(other)).toEqual([1, [1]])
})

describe('with row-level access', () => {
  /** Searches in a knowledge base with the same ID, in a workspace without row-level access. */
  async function searchTwin({ knowledgeBaseId, operator }: RestrictedWorkspace) {
    const { workspaceId } = (await operator('POST /api/v1/workspaces', { name: 'open', kind: 'local' })).body
    const bases = `/api/v1/workspaces/${workspaceId}/knowledge-bases`
    await operator(`POST ${bases}`, { name: 'twin', knowledgeBaseId })
    await operator(`PATCH ${bases}/${knowledgeBaseId}`, { queryLog: true })
    await operator(`POST ${bases}/${knowledgeBaseId}/search`, { text: 'in the twin' })
  }

  async function openWithSearches() {
    const opened = await openRestrictedWorkspace()
    const { base, operator, as } = opened
    await operator(`PATCH ${base}`, { queryLog: true })
    await ingest(as('bob'), base, { text: 'The zeppelin of bob.' })
    for (const name of ['alice', 'bob'])
      await as(name)(`POST ${base}/search`, { text: `zeppelin of ${name}` })
    const insights = async (send: Send, headers?: Record<string, string>) =>
      (await send(`GET ${base}/insights`, undefined, headers)).body as unknown as QueryInsights
    return { ...opened, insights }
  }

  test('security: a caller without manage:access gets only its own searches', async () => {
    const { as, operator, insights } = await openWithSearches()
    const own = await insights(as('alice'))
    expect(own).toMatchObject({ ownOnly: true, callers: 1 })
    expect(questionsOf(own.slow)).toEqual([['zeppelin of alice', 1]])
    expect(await insights(operator)).toMatchObject({ ownOnly: false, callers: 2 })
  })

  test('security: many searches of others do not change the summary of a limited caller', async () => {
    const { wb, as, insights } = await openWithSearches()
    const [row] = await storedSearches(wb)
    const { rows, close } = await openEmbeddedStore({ path: `${wb.dataDir}/workbase.db` })
    const others = Array.from({ length: limits.loggedSearchesRead + 1 }, () => ({
      ...row!,
      searchId: randomUUID(),
      caller: 'principal:bob',
    }))
    await rows.atomic(others.map(other => ({ op: 'insert', table: tables.queryLog, row: other })))
    await close()
    expect(await insights(as('alice'))).toMatchObject({ searches: 1, complete: true })
  })

  test('an entry contains only what its caller could see', async () => {
    const { operator, insights } = await openWithSearches()
    const { unanswered } = await insights(operator)
    expect(unanswered).toMatchObject([{ question: 'zeppelin of alice', hits: 0 }])
  })

  test('security: searches while viewing as another principal are not recorded, and show its view', async () => {
    const { base, wb, insights, operator } = await openWithSearches()
    const viewAs = { 'x-view-as-principal': 'alice' }
    const manager = { label: 'm', scopes: ['read', 'manage:access'], principalId: 'manager' }
    const { plaintext } = (await operator(`POST ${base.split('/knowledge-bases')[0]}/api-keys`, manager)).body
    const send: Send = (line, json, headers) =>
      wb.send(line, json, { authorization: `Bearer ${plaintext}`, ...headers })
    await send(`POST ${base}/search`, { text: 'as alice' }, viewAs)
    expect((await insights(send)).searches).toBe(2)
    const viewed = await insights(send, viewAs)
    expect([viewed.ownOnly, questionsOf(viewed.slow)]).toEqual([true, [['zeppelin of alice', 1]]])
  })

  test('security: a search of several knowledge bases reveals nothing about the others', async () => {
    const opened = await openWithSearches()
    const { wb, base, workspace, operator, as } = opened
    const other = await operator(`POST ${workspace}/knowledge-bases`, { name: 'other' })
    const otherPath = `${workspace}/knowledge-bases/${other.body.knowledgeBaseId}`
    await operator(`PATCH ${otherPath}`, { queryLog: true })
    await opened.insights(operator)
    await searchTwin(opened)
    await as('bob')(`POST ${workspace}/search`, { text: 'zeppelin' })
    await operator(`GET ${base}/insights`)
    const stored = (await storedSearches(wb)).filter(({ question }) => question === 'zeppelin')
    expect(stored.map(({ hits, result }) => [hits, result])).toEqual([
      [1, null],
      [0, null],
    ])
  })
})
