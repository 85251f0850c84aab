import { expect, test } from 'vitest'
import { McpBridge } from '../../src/cli/mcp/bridge.ts'
import type { RawCall } from '../../src/client/client.ts'
import type { Incoming } from '../../src/client/transport.ts'

const list = (id: unknown) => JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/list' })

/** A bridge to a runtime that answers when it is told to, and never to who has gone. */
function stage() {
  const calls: { call: RawCall; answer(status: number, body: object): void }[] = []
  const written: Record<string, unknown>[] = []
  const bridge = new McpBridge({
    path: '/mcp',
    allowed: new Set(),
    signal: new AbortController().signal,
    write: message => void written.push({ ...message }),
    raw: call =>
      new Promise((resolve, reject) => {
        call.signal!.addEventListener('abort', () => reject(call.signal!.reason))
        const answer = (status: number, body: object) => resolve(incoming(status, body))
        calls.push({ call, answer })
      }),
  })
  return { bridge, calls, written }
}

function incoming(status: number, body: object): Incoming {
  const headers = new Headers({ 'content-type': 'application/json' })
  return { url: '', status, headers, body: null, text: async () => JSON.stringify(body) }
}

test('answers come in any order; a request that is called off is aborted and not answered', async () => {
  const { bridge, calls, written } = stage()
  for (const id of ['a', 'b', 'c']) bridge.take(list(id))
  const params = { requestId: 'b' }
  bridge.take(JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params }))
  expect(calls.map(({ call }) => call.signal!.aborted)).toEqual([false, true, false])
  bridge.take(list('a'))
  for (const at of [2, 0]) {
    const { id } = JSON.parse(calls[at]!.call.body!) as { id: string }
    calls[at]!.answer(200, {
      jsonrpc: '2.0',
      id,
      result: { tools: [{ name: 'later' }, { name: 'get_agent' }] },
    })
    await new Promise(setImmediate)
  }
  await bridge.settled()
  expect(written).toMatchObject([
    { id: 'a', error: { message: 'a request of this id is under way' } },
    { id: 'c', result: { tools: [{ name: 'get_agent' }] } },
    { id: 'a', result: { tools: [{ name: 'get_agent' }] } },
  ])
})

test('a refusal of the runtime is an error with its code; the 65th request at once is told to wait', async () => {
  const { bridge, calls, written } = stage()
  for (let id = 0; id < 65; id++) bridge.take(list(id))
  expect(written).toMatchObject([{ id: 64, error: { code: -32_000 } }])
  const error = { code: 'unauthorized', message: 'who are you', requestId: 'r1' }
  for (const { answer } of calls) answer(401, { error })
  await bridge.settled()
  expect(written).toHaveLength(65)
  const data = { code: 'unauthorized', requestId: 'r1' }
  expect(written[1]).toMatchObject({ id: 0, error: { code: -32_000, message: 'who are you', data } })
})

test.each([
  ['an object that is no text', { toString: 1, valueOf: 1 }],
  ['a list', ['delete_document']],
  ['nothing', null],
])('a name that is %s is refused, and the client is served on', async (_, name) => {
  const { bridge, calls, written } = stage()
  bridge.take(JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name } }))
  await bridge.settled()
  expect(written).toMatchObject([{ id: 1, error: { code: -32_602 } }])
  expect(calls).toEqual([])
})
