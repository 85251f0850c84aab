import { expect, test } from 'vitest'
import { McpBridge } from '../../src/cli/mcp/bridge.ts'
import type { McpPermission } from '../../src/cli/mcp/mcp-permissions.ts'
import type { RawCall } from '../../src/client/client.ts'
import type { IncomingResponse } from '../../src/client/fetch.ts'
import { Unreachable } from '../../src/client/unreachable.ts'

const list = (id: unknown) => JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/list' })

/** Creates a bridge to a runtime that answers on demand. Aborted requests get no answer. */
function createBridge(allowed: readonly McpPermission[] = []) {
  const calls: { call: RawCall; answer(status: number, body: object): void; fail(error: Error): void }[] = []
  const written: Record<string, unknown>[] = []
  const bridge = new McpBridge({
    path: '/mcp',
    permissions: new Set(allowed),
    signal: new AbortController().signal,
    pause: async () => {},
    write: message => void written.push({ ...message }),
    sendRequest: call =>
      new Promise((resolve, reject) => {
        call.signal!.addEventListener('abort', () => reject(call.signal!.reason))
        const answer = (status: number, body: object) => resolve(responseOf(status, body))
        calls.push({ call, answer, fail: reject })
      }),
  })
  return { bridge, calls, written }
}

function responseOf(status: number, body: object): IncomingResponse {
  const headers = new Headers({ 'content-type': 'application/json' })
  return { url: '', status, headers, body: null, text: async () => JSON.stringify(body) }
}

test('answers in any order, and aborts a cancelled request without an answer', async () => {
  const { bridge, calls, written } = createBridge()
  for (const id of ['a', 'b', 'c']) bridge.handleLine(list(id))
  const params = { requestId: 'b' }
  bridge.handleLine(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params }))
  expect(calls.map(({ call }) => call.signal!.aborted)).toEqual([false, true, false])
  bridge.handleLine(list('a'))
  for (const at of [2, 0]) {
    const { id } = JSON.parse(calls[at]!.call.body!) as { id: string }
    calls[at]!.answer(200, {
      jsonrpc: '2.0',
      id,
      result: { tools: [{ name: 'later' }, { name: 'get_agent' }] },
    })
    await new Promise(setImmediate)
  }
  await bridge.waitForRequests()
  expect(written).toMatchObject([
    { id: 'a', error: { message: 'a request with this id is in progress' } },
    { id: 'c', result: { tools: [{ name: 'get_agent' }] } },
    { id: 'a', result: { tools: [{ name: 'get_agent' }] } },
  ])
})

test('returns a runtime error with its code, and rejects a 65th concurrent request', async () => {
  const { bridge, calls, written } = createBridge()
  for (let id = 0; id < 65; id++) bridge.handleLine(list(id))
  expect(written).toMatchObject([{ id: 64, error: { code: -32_000 } }])
  const error = { code: 'unauthorized', message: 'who are you', requestId: 'r1' }
  for (const { answer } of calls) answer(401, { error })
  await bridge.waitForRequests()
  expect(written).toHaveLength(65)
  const data = { code: 'unauthorized', requestId: 'r1' }
  expect(written[1]).toMatchObject({ id: 0, error: { code: -32_000, message: 'who are you', data } })
})

test.each([
  ['an object without a text value', { toString: 1, valueOf: 1 }],
  ['a list', ['delete_document']],
  ['nothing', null],
])('rejects a name that is %s, and continues to serve the client', async (_, name) => {
  const { bridge, calls, written } = createBridge()
  bridge.handleLine(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name } }))
  await bridge.waitForRequests()
  expect(written).toMatchObject([{ id: 1, error: { code: -32_602 } }])
  expect(calls).toEqual([])
})

const protocol2026 = { _meta: { 'io.modelcontextprotocol/protocolVersion': '2026-07-28' } }

function toolCall(name: string, params: object = {}) {
  return JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { ...params, name } })
}

test.each([
  ['of 2026 has the resultType that it requires', protocol2026, 'complete'],
  ['before 2026 has no resultType', {}, undefined],
])('an error in a protocol version %s', async (_, params, resultType) => {
  const { bridge, written } = createBridge()
  for (const name of ['ingest_text', 'later_tool']) bridge.handleLine(toolCall(name, params))
  await bridge.waitForRequests()
  const results = written.map(({ result }) => result as Record<string, unknown>)
  expect(results).toMatchObject([{ isError: true }, { isError: true }])
  expect(results.map(result => result.resultType)).toEqual([resultType, resultType])
})

test.each([
  [
    'the URI of a resource',
    'resources/read',
    { uri: 'workbase://w/kb/k/documents/d' },
    'workbase://w/kb/k/documents/d',
  ],
  ['the name of a tool', 'tools/call', { name: 'get_agent' }, 'get_agent'],
  ['a name beyond ASCII', 'prompts/get', { name: 'grüße' }, '=?base64?Z3LDvMOfZQ==?='],
])('a header in protocol version 2026 repeats %s', async (_, method, params, header) => {
  const { bridge, calls } = createBridge()
  bridge.handleLine(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { ...protocol2026, ...params } }))
  expect(calls[0]!.call.headers).toMatchObject({ 'mcp-method': method, 'mcp-name': header })
})

/** Sends a request that always fails in the same way, until the bridge stops retrying. */
async function failUntilGivenUp(line: string, error: Error) {
  const { bridge, calls, written } = createBridge()
  bridge.handleLine(line)
  for (let sent = 0; sent < calls.length; sent++) {
    calls[sent]!.fail(error)
    await new Promise(setImmediate)
  }
  await bridge.waitForRequests()
  return { sent: calls.length, written }
}

const connectionRefused = unreachable('ECONNREFUSED')
const connectionBroken = unreachable('ECONNRESET')

function unreachable(code: string): Unreachable {
  return new Unreachable('no runtime answers', 'Start one.', {
    cause: Object.assign(new Error(code), { code }),
  })
}

test.each([
  ['a request of any kind that never arrived', toolCall('ingest_text'), connectionRefused],
  ['a request for a list whose answer broke off', list(1), connectionBroken],
  ['a tool that reads and whose answer broke off', toolCall('search_kb'), connectionBroken],
])('retries %s a few times', async (_, line, error) => {
  const { bridge, calls, written } = createBridge(['write:ingest'])
  bridge.handleLine(line)
  calls[0]!.fail(error)
  await new Promise(setImmediate)
  calls[1]!.answer(200, { jsonrpc: '2.0', id: 1, result: {} })
  await bridge.waitForRequests()
  expect(written).toMatchObject([{ id: 1, result: {} }])
  expect((await failUntilGivenUp(list(1), connectionRefused)).sent).toBe(6)
})

test('does not retry a tool that changes data if its answer breaks off, and the error explains why', async () => {
  const { bridge, calls, written } = createBridge(['write:ingest'])
  bridge.handleLine(toolCall('ingest_text'))
  calls[0]!.fail(connectionBroken)
  await bridge.waitForRequests()
  expect(calls).toHaveLength(1)
  const message = expect.stringContaining('during ingest_text; the call may have been carried out')
  const hint = 'Check whether the change was made before you repeat the call.'
  expect(written).toMatchObject([{ id: 1, error: { message, data: { hint } } }])
})

test('retries a request that is rejected during shutdown', async () => {
  const { bridge, calls, written } = createBridge(['write:ingest'])
  bridge.handleLine(toolCall('ingest_text'))
  calls[0]!.answer(503, { error: { code: 'draining', message: 'the runtime is shutting down' } })
  await new Promise(setImmediate)
  calls[1]!.answer(200, { jsonrpc: '2.0', id: 1, result: {} })
  await bridge.waitForRequests()
  expect(written).toMatchObject([{ id: 1, result: {} }])
})
