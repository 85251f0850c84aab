import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { describe, expect, onTestFinished, test } from 'vitest'
import { RawBody } from '../harness/http-runtime.ts'
import { makeWorkspace } from '../harness/resources.ts'
import { TestClock, waitUntil } from '../harness/runtime.ts'
import { acceptHeaders, call, setUpMcp, unknownId } from './mcp-setup.ts'

const list = { jsonrpc: '2.0', id: 1, method: 'tools/list' }

/** A message that opens a stream of events in the protocol revision of 2026, and its headers. */
const subscribe = {
  jsonrpc: '2.0',
  id: 2,
  method: 'subscriptions/listen',
  params: {
    notifications: { toolsListChanged: true },
    _meta: {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    },
  },
}
const subscribeHeaders = {
  'mcp-protocol-version': '2026-07-28',
  'mcp-method': 'subscriptions/listen',
}

/** Returns the JSON-RPC messages of a response. */
function messagesIn(text: string): Record<string, unknown>[] {
  return [...text.matchAll(/^data: (.+)$/gm)].map(([, data]) => JSON.parse(data!))
}

describe('the MCP route', () => {
  test('S4.2-26: is a JSON-RPC endpoint without scopes, sessions or initialization', async () => {
    const wb = await setUpMcp()
    const headers = { ...acceptHeaders, authorization: `Bearer ${await wb.mint(['tools:invoke'])}` }
    const post = (body: unknown, more = {}) => wb.send(`POST ${wb.path}`, body, { ...headers, ...more })
    const answer = await post(list)
    expect(answer.status).toBe(200)
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      'content-type': 'text/event-stream',
      'x-content-type-options': 'nosniff',
      'x-request-id': expect.any(String),
      'x-ratelimit-limit': expect.any(String),
    })
    expect(answer.headers.get('mcp-session-id')).toBeNull()
    const [told] = messagesIn(answer.text)
    expect(told).toMatchObject({ id: 1, result: { tools: expect.any(Array) } })

    for (const only of ['application/json', 'text/event-stream', '*/*']) {
      const refused = await post(list, { accept: only })
      expect(refused).toMatchObject({ status: 406, body: { id: null, error: { code: -32_000 } } })
    }
    expect(await post({ ...list, method: 'prompts/list' })).toMatchObject({ status: 200 })
    const [missing] = messagesIn((await post({ ...list, method: 'prompts/list' })).text)
    expect(missing).toMatchObject({ error: { code: -32_601 } })
    expect(await post({ jsonrpc: '2.0', method: 'notifications/initialized' })).toMatchObject({ status: 202 })
    const { authorization } = headers
    expect(await wb.send(`DELETE ${wb.path}`, undefined, { authorization })).toMatchObject({
      status: 200,
      text: '',
    })
    const blind = await wb.send(`GET ${wb.path}`, undefined, { authorization, accept: 'application/json' })
    expect(blind).toMatchObject({ status: 406, body: { id: null, error: { code: -32_000 } } })
  })

  test('rejects invalid messages and handles batches in order', async () => {
    const wb = await setUpMcp()
    const headers = { ...acceptHeaders, authorization: `Bearer ${await wb.mint(['read'])}` }
    const post = (body: unknown) => wb.send(`POST ${wb.path}`, body, headers)
    expect((await post({ hello: 1 })).body).toMatchObject({ error: { code: -32_600 } })
    for (const [body, code] of [
      [new RawBody('{"jsonrpc"', 'application/json'), 'validation_error'],
      [new RawBody(JSON.stringify(list), 'text/plain'), 'validation_error'],
      [new RawBody(`{"a":${'['.repeat(80)}${']'.repeat(80)}}`, 'application/json'), 'validation_error'],
      [new RawBody(`"${'x'.repeat(10_000_001)}"`, 'application/json'), 'payload_too_large'],
    ] as const)
      expect((await post(body)).body).toMatchObject({ error: { code } })
    const call = { jsonrpc: '2.0', method: 'tools/call', params: { name: 'list_knowledge_bases' } }
    const answers = messagesIn((await post([1, 2, 3].map(id => ({ ...call, id })))).text)
    expect(answers.map(({ id }) => id)).toEqual([1, 2, 3])
    expect(await wb.toolAuditRecords()).toHaveLength(3)
  })

  test('rejects a key of another workspace, an unknown workspace and missing credentials', async () => {
    const wb = await setUpMcp()
    const other = await makeWorkspace({ call: wb.callAsOperator })
    const foreign = {
      ...acceptHeaders,
      authorization: `Bearer ${await wb.mint(['read'], other.workspaceId)}`,
    }
    for (const method of ['POST', 'GET', 'DELETE']) {
      const line = `${method} ${wb.path}`
      const body = method === 'POST' ? list : undefined
      expect(await wb.send(line, body, foreign)).toMatchObject({
        status: 403,
        body: { error: { code: 'forbidden' } },
      })
      expect(await wb.send(line, body, acceptHeaders)).toMatchObject({ status: 401 })
    }
    const nowhere = await wb.sendAsOperator(`POST /api/v1/workspaces/${unknownId}/mcp`, list)
    expect(nowhere).toMatchObject({ status: 404, body: { error: { code: 'workspace_not_found' } } })
  })

  test('with mcp.enabled: false returns 404 for any request', async () => {
    const wb = await setUpMcp({ config: { mcp: { enabled: false } } })
    for (const method of ['POST', 'GET', 'DELETE']) {
      const answer = await wb.sendAsOperator(`${method} ${wb.path}`, method === 'POST' ? list : undefined)
      expect(answer).toMatchObject({ status: 404, body: { error: { code: 'not_found' } } })
    }
    expect((await wb.send('GET /features')).body).toMatchObject({ mcp: { enabled: false, baseUrl: null } })
  })

  test('supports the protocol revision of 2026', async () => {
    const wb = await setUpMcp()
    const transport = new StreamableHTTPClientTransport(new URL(wb.path, wb.url), {
      requestInit: { headers: { authorization: `Bearer ${await wb.mint(['read'])}` } },
    })
    const client = new Client(
      { name: 'test', version: '1' },
      { versionNegotiation: { mode: { pin: '2026-07-28' } } },
    )
    await client.connect(transport)
    onTestFinished(() => client.close())
    const told = await call(client, 'list_knowledge_bases')
    expect(told).toMatchObject({ isError: false, value: [{ name: wb.base.name }] })
  })
})

describe('event stream of the MCP route', () => {
  test('counts towards the limit of streams like a subscription, and ends when the runtime drains', async () => {
    const wb = await setUpMcp({ config: { runtime: { streamsPerCaller: 4 } } })
    const authorization = `Bearer ${await wb.mint(['read'])}`
    const headers = { authorization, accept: 'text/event-stream' }
    const url = new URL(wb.path, wb.url)
    const gone = new AbortController()
    const { signal } = gone
    const post = async (body: object, more = {}) =>
      fetch(url, {
        method: 'POST',
        headers: { ...acceptHeaders, authorization, 'content-type': 'application/json', ...more },
        body: JSON.stringify(body),
        signal,
      })
    const subscription = await post(subscribe, subscribeHeaders)
    const streams = await Promise.all(Array.from({ length: 3 }, () => fetch(url, { headers, signal })))
    expect([subscription, ...streams].map(({ status }) => status)).toEqual([200, 200, 200, 200])
    expect((await fetch(url, { headers })).status).toBe(429)
    const answer = await post(list)
    expect(messagesIn(await answer.text())).toMatchObject([{ id: 1, result: { tools: expect.any(Array) } }])
    gone.abort()
    await waitUntil(() => wb.runtime.app.inFlight === 0)
    const last = await fetch(url, { headers })
    expect(last.status).toBe(200)
    wb.runtime.app.drain()
    expect(await last.text()).toBe('')
  })

  test('S3-01: ends only for the revoked key, without a notification', async () => {
    const clock = new TestClock()
    const wb = await setUpMcp({ clock })
    const listen = async (token: string) =>
      fetch(new URL(wb.path, wb.url), {
        headers: { authorization: `Bearer ${token}`, accept: 'text/event-stream' },
      })
    const [revoked, kept] = [await wb.mint(['read']), await wb.mint(['read'])]
    const [ends, goesOn] = await Promise.all([listen(revoked), listen(kept)])
    const keys = `/api/v1/workspaces/${wb.workspaceId}/api-keys`
    const { items } = (await wb.sendAsOperator(`GET ${keys}`)).body as { items: Record<string, string>[] }
    const { keyId } = items.find(({ prefix }) => revoked.includes(prefix!))!
    expect((await wb.sendAsOperator(`DELETE ${keys}/${keyId}`)).status).toBe(204)
    clock.advance(15_000)
    expect(await ends.text()).toBe('')
    expect(wb.runtime.app.inFlight).toBe(1)
    await goesOn.body!.cancel()
  })
})
