import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import { kb } from '../../src/contract/knowledge.ts'
import { parseExposition } from '../harness/exposition.ts'
import { makeBase, makeWorkspace } from '../harness/resources.ts'
import { open, TestClock } from '../harness/runtime.ts'
import { openTestChat } from '../harness/test-chat.ts'
import { anyText, exactly, isoMs, count as wholeNumber } from './exactly.ts'
import { unknownId } from './shapes.ts'

/** Returns a line of the exposition by its prefix. */
function sampleOf(text: string, name: string): number | undefined {
  const line = text.split('\n').find(one => one.startsWith(`${name} `))
  return line === undefined ? undefined : Number(line.slice(name.length + 1))
}

async function providerAnswering(status: number): Promise<string> {
  const server = createServer((_, response) => response.writeHead(status).end('{}')).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`
}

describe('GET /metrics', () => {
  test('returns Prometheus text with the documented names, with counts by route pattern', async () => {
    const wb = await open({ server: true })
    const { workspaceId } = await makeWorkspace(wb)
    for (let at = 0; at < 3; at++) await wb.send(`GET /api/v1/workspaces/${workspaceId}`)
    await wb.send(`GET /api/v1/workspaces/${unknownId}`)
    await wb.send('GET /no/such/route')
    const { status, text, headers } = await wb.send('GET /metrics')
    expect([status, headers.get('content-type')]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8'])
    for (const name of [
      'http_requests_total counter',
      'http_request_duration_seconds histogram',
      'rate_limit_rejections_total counter',
      'ingest_workers_active gauge',
      'ingest_workers_queued gauge',
      'ingest_documents_total counter',
      'search_requests_total counter',
      'search_duration_seconds histogram',
      'chat_requests_total counter',
    ])
      expect(text).toContain(`# TYPE workbase_${name}\n`)
    const requests = (labels: string) => sampleOf(text, `workbase_http_requests_total{${labels}}`)
    const one = 'method="GET",route="/api/v1/workspaces/:workspaceId"'
    expect(requests(`${one},status="2xx"`)).toBe(3)
    expect(requests(`${one},status="4xx"`)).toBe(1)
    expect(requests('method="GET",route="<unmatched>",status="4xx"')).toBe(1)
    expect(text).not.toContain(workspaceId)
    expect(sampleOf(text, `workbase_http_request_duration_seconds_count{${one},status="2xx"}`)).toBe(3)
    expect([
      sampleOf(text, 'workbase_ingest_workers_active'),
      sampleOf(text, 'workbase_ingest_workers_queued'),
    ]).toEqual([0, 0])
  })

  test('has a bounded number of series, regardless of the requested paths', async () => {
    const wb = await open({ server: true })
    for (let at = 0; at < 50; at++) await wb.send(`GET /nowhere/${at}`)
    for (const method of ['INVENTED', 'X-OTHER']) await wb.send(`${method} /nowhere`)
    const { text } = await wb.send('GET /metrics')
    const series = text.split('\n').filter(line => line.startsWith('workbase_http_requests_total{'))
    expect(series).toHaveLength(2)
    expect(text).toContain('{method="other",route="<unmatched>",status="4xx"} 2')
  })

  test('is valid and has the standard metrics of the process and the build', async () => {
    const wb = await open({ server: true, environment: { APP_COMMIT: 'a"b\\c' } })
    const families = parseExposition((await wb.send('GET /metrics')).text)
    const values = (name: string) => families.get(name)?.samples.map(({ value }) => value)
    const [started] = values('process_start_time_seconds')!
    expect(started).toBeCloseTo(performance.timeOrigin / 1_000, -2)
    for (const name of ['process_cpu_seconds_total', 'process_resident_memory_bytes', 'process_open_fds'])
      expect(values(name)?.[0], name).toBeGreaterThan(0)
    for (const name of ['nodejs_eventloop_lag_p99_seconds', 'nodejs_heap_size_used_bytes'])
      expect(values(name), name).toHaveLength(1)
    const named = [...families.values()].filter(
      ({ name, type }) => name.endsWith('_total') !== (type === 'counter'),
    )
    expect(named.map(({ name }) => name)).toEqual([])
    const [version] = families.get('nodejs_version_info')!.samples
    expect(families.get('workbase_build_info')).toMatchObject({
      type: 'gauge',
      samples: [{ value: 1, labels: { commit: 'a"b\\c', node: version!.labels.version } }],
    })
  })

  test('counts request durations with a resolution below one millisecond', async () => {
    const wb = await open({ server: true })
    for (let at = 0; at < 20; at++) await wb.send('GET /healthz')
    const { text } = await wb.send('GET /metrics')
    const labels = 'method="GET",route="/healthz",status="2xx"'
    const sum = sampleOf(text, `workbase_http_request_duration_seconds_sum{${labels}}`)!
    expect(sum).toBeGreaterThan(0)
    expect(Math.abs(sum * 1_000 - Math.round(sum * 1_000))).toBeGreaterThan(0.0009)
  })

  test('counts searches by mode and outcome', async () => {
    const wb = await open({ server: true })
    const { workspaceId } = await makeWorkspace(wb)
    const base = await makeBase(wb, { workspaceId })
    await base.ingest('Some words about gliders.')
    const search = (body: object) =>
      wb.call(kb.search, { params: base.params, body: { text: 'gliders', ...body } })
    await search({ hybrid: false })
    await search({ hybrid: false, rerank: true })
    await search({})
    await search({ lexicalWeight: 1, rerank: true })
    await search({ text: '???', hybrid: true })
    const workspace = `/api/v1/workspaces/${workspaceId}`
    await wb.send(`POST ${workspace}/search`, { text: 'gliders', hybrid: false })
    await wb.send(`POST ${workspace}/knowledge-bases/${unknownId}/search`, { text: 'gliders', hybrid: true })
    const families = parseExposition((await wb.send('GET /metrics')).text)
    const counted = families.get('workbase_search_requests_total')!.samples
    expect(
      Object.fromEntries(counted.map(({ labels, value }) => [`${labels.mode} ${labels.outcome}`, value])),
    ).toEqual({
      'vector ok': 2,
      'vector_rerank ok': 1,
      'hybrid ok': 1,
      'lexical ok': 2,
      'none error': 1,
    })
    const timed = families.get('workbase_search_duration_seconds')!.samples
    expect(timed.find(({ name, labels }) => name.endsWith('_count') && labels.mode === 'vector')?.value).toBe(
      2,
    )
  })

  test('counts requests of agents to models by provider and outcome', async () => {
    const { model, stream, streamEvents, send } = await openTestChat({ server: true })
    model.script({ text: 'Hello.' }, { status: 400, body: 'no' }, { text: 'one two', silentAfter: 2 })
    await stream('hi')
    await stream('hi')
    for await (const { event } of streamEvents('hi')) if (event === 'token') break
    const chats = async (outcome: string) =>
      sampleOf(
        (await send('GET /metrics')).text,
        `workbase_chat_requests_total{provider="ollama",outcome="${outcome}"}`,
      )
    await expect.poll(() => chats('interrupted')).toBe(1)
    expect([await chats('ok'), await chats('error')]).toEqual([1, 1])
  })

  test('counts the documents that the ingest worker has finished', async () => {
    const wb = await open({ server: true })
    const base = await makeBase(wb)
    const path = `/api/v1/workspaces/${base.params.workspaceId}/knowledge-bases/${base.params.knowledgeBaseId}`
    const accepted = await wb.send(`POST ${path}/ingest?async=true`, { text: 'Read in the background.' })
    expect(accepted.status, accepted.text).toBe(202)
    await wb.settle()
    await expect
      .poll(async () =>
        sampleOf((await wb.send('GET /metrics')).text, 'workbase_ingest_documents_total{outcome="ok"}'),
      )
      .toBe(1)
  })

  test('lists metrics without samples before the first request', async () => {
    const { status, text } = await (await open()).send('GET /metrics')
    expect([status, text.includes('# TYPE workbase_http_requests_total counter')]).toEqual([200, true])
  })

  test('succeeds if the store does not respond', async () => {
    let isDown = false
    const wb = await open({
      server: true,
      rows: store => ({
        ...store,
        get: (table, key) => store.get(table, key),
        list: (table, query) => store.list(table, query),
        atomic: writes => store.atomic(writes),
        count: (...asked) => (isDown ? Promise.reject(new Error('down')) : store.count(...asked)),
      }),
    })
    isDown = true
    expect((await wb.send('GET /metrics')).status).toBe(200)
    const { body } = await wb.send('GET /health/details')
    expect(body).toMatchObject({ controlPlane: { status: 'down', detail: 'does not respond' }, ingest: null })
  })
})

describe('GET /health/details', () => {
  const probe = { status: 'ok', detail: anyText, durationMs: wholeNumber }
  const load = { active: 0, capacity: 4, queued: 0 }

  test('reports the status of each part, and chat as down without a chat provider', async () => {
    const wb = await open()
    await makeWorkspace(wb)
    const { status, body } = await wb.send('GET /health/details')
    expect(status).toBe(200)
    exactly(body, {
      controlPlane: { ...probe, detail: '1 workspace' },
      chat: { status: 'down', detail: 'no chat provider is configured', durationMs: 0 },
      ingest: load,
      recentErrors: { capacity: 100, count: 0 },
    })
  })

  test.each([
    [200, 'ok', 'openai responds'],
    [401, 'ok', 'openai responds'],
    [499, 'ok', 'openai responds'],
    [500, 'degraded', 'openai responds with status 500'],
    [503, 'degraded', 'openai responds with status 503'],
  ])('a chat provider that responds with %i is %s', async (answered, status, detail) => {
    const baseUrl = await providerAnswering(answered)
    const config = { chat: { provider: 'openai', baseUrl, tokenRef: 'env:KEY' } }
    const wb = await open({ config, environment: { KEY: 'k' } })
    const { body } = await wb.send('GET /health/details')
    exactly(body.chat, { ...probe, status, detail })
  })

  test('reports a part that does not respond as down after three seconds', async () => {
    const clock = new TestClock()
    let asked = () => {}
    const isAsked = new Promise<void>(resolve => {
      asked = resolve
    })
    const wb = await open({
      clock,
      config: { chat: { provider: 'ollama' } },
      outbound: () => {
        asked()
        return new Promise(() => {})
      },
    })
    const answer = wb.send('GET /health/details')
    await isAsked
    clock.advance(3_000)
    exactly((await answer).body.chat, {
      status: 'down',
      detail: 'no response within 3000 ms',
      durationMs: 3_000,
    })
  })
})

describe('GET /health/recent-errors', () => {
  test('lists errors by route pattern, newest first, without validation errors', async () => {
    const wb = await open({ config: { runtime: { rateLimit: { capacity: 1000 } } } })
    const missing = await wb.send(`GET /api/v1/workspaces/${unknownId}`)
    await wb.send('GET /no/such/route')
    await wb.send('POST /api/v1/workspaces', { name: 5 })
    const { body } = await wb.send('GET /health/recent-errors')
    exactly(body, {
      capacity: 100,
      entries: [
        {
          ts: isoMs,
          code: 'not_found',
          status: 404,
          method: 'GET',
          routePattern: '<unmatched>',
          requestId: anyText,
        },
        {
          ts: isoMs,
          code: 'workspace_not_found',
          status: 404,
          method: 'GET',
          routePattern: '/api/v1/workspaces/:workspaceId',
          requestId: (missing.body.error as { requestId: string }).requestId,
        },
      ],
    })
    expect((await wb.send('GET /health/details')).body.recentErrors).toEqual({ capacity: 100, count: 2 })
  })

  test('keeps the last hundred errors', async () => {
    const wb = await open()
    for (let at = 0; at < 105; at++)
      await wb.send('GET /nowhere', undefined, { 'x-request-id': `request-${at}` })
    const { entries } = (await wb.send('GET /health/recent-errors')).body as {
      entries: { requestId: string }[]
    }
    expect(entries).toHaveLength(100)
    expect([entries[0]!.requestId, entries[99]!.requestId]).toEqual(['request-104', 'request-5'])
  })
})

test('operational details require operator access if authentication is enabled', async () => {
  const wb = await open({ config: { auth: { mode: 'apiKey', anonymousPolicy: 'allow' } } })
  for (const path of ['/metrics', '/health/details', '/health/recent-errors']) {
    expect((await wb.send(`GET ${path}`)).status).toBe(401)
    expect((await wb.sendAsOperator(`GET ${path}`)).status).toBe(200)
  }
})

test('reports the command line of Astra as not installed', async () => {
  const wb = await open()
  const reason = 'binary-not-found'
  exactly((await wb.send('GET /astra-cli')).body, { detected: false, reason })
  exactly((await wb.send('GET /astra-cli/profiles')).body, { available: false, reason })
})
