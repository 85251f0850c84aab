import { expect, onTestFinished, test, vi } from 'vitest'
import { verifiedContext } from '../../../src/access/subject.ts'
import { DetachedTurns } from '../../../src/agents/chat/detached-turns.ts'
import { readEvents } from '../../../src/client/read-events.ts'
import { agents } from '../../../src/contract/agents.ts'
import type { TurnEvent } from '../../../src/contract/chat.ts'
import type { Message } from '../../../src/contract/conversations.ts'
import { limits } from '../../../src/contract/limits.ts'
import { llmServices } from '../../../src/contract/services.ts'
import { startChatServer } from '../../fakes/chat-server.ts'
import { imageOf } from '../../harness/images.ts'
import { makeWorkspace } from '../../harness/resources.ts'
import { open, TestClock, type TestRuntime } from '../../harness/runtime.ts'
import { eventData, eventNames, openTestChat, type TestChat } from '../../harness/test-chat.ts'

const detached = { detached: true }
const silentLog = { debug() {}, info() {}, warn() {}, error() {} }
const subject = {
  label: null,
  type: 'apiKey',
  workspaceScopes: null,
  scopes: null,
  role: null,
  principalId: null,
  keyLifetimeMaxMs: null,
} as const
const words = { text: 'one two three four', silentAfter: 3 }

/** Yields the events of the running turn of a conversation until the consumer disconnects. */
async function* readTurn(
  { runtime }: Pick<TestRuntime, 'runtime'>,
  path: string,
  headers: Record<string, string> = {},
): AsyncGenerator<TurnEvent> {
  const leave = new AbortController()
  const { signal } = leave
  const answer = await runtime.fetch(
    new Request(`http://localhost${path}/messages/stream`, { headers, signal }),
  )
  expect(answer.status).toBe(200)
  try {
    for await (const { event, data } of readEvents(answer.body!, signal)) yield { event, data } as TurnEvent
  } finally {
    leave.abort()
  }
}

/** Sends a question and disconnects after the answer has started. */
async function sendAndDisconnect(chat: TestChat): Promise<void> {
  for await (const { event } of chat.streamEvents('count', detached)) if (event === 'token') break
}

async function answerOf({ send, path }: TestChat): Promise<Message | undefined> {
  return ((await send(`GET ${path}/messages`)).body.items as Message[])[1]
}

test('a detached turn continues when its reader disconnects, and its answer is complete', async () => {
  const chat = await openTestChat()
  chat.model.script(words)
  await sendAndDisconnect(chat)
  chat.model.release()
  await vi.waitFor(async () => {
    const answer = await answerOf(chat)
    expect(answer).toMatchObject({ content: words.text, metadata: { finish_reason: 'stop' } })
    expect(answer!.metadata).not.toHaveProperty('interrupted')
  }, 10_000)
})

test('a detached turn can be read again from its first event, while it runs and after its end', async () => {
  const chat = await openTestChat()
  chat.model.script(words)
  await sendAndDisconnect(chat)
  const events: TurnEvent[] = []
  for await (const event of readTurn(chat, chat.path)) {
    if (event.event === 'token' && events.length === 1) chat.model.release()
    events.push(event)
  }
  expect(eventNames(events)).toEqual(['user-message', 'token', 'done'])
  expect(eventData(events, 'token').map(({ delta }) => delta)).toHaveLength(4)
  const again: TurnEvent[] = []
  for await (const event of readTurn(chat, chat.path)) again.push(event)
  expect(again).toEqual(events)
})

test('the sender stops a detached turn, and the partial answer is stored as interrupted', async () => {
  const chat = await openTestChat()
  chat.model.script(words)
  await sendAndDisconnect(chat)
  expect((await chat.send(`DELETE ${chat.path}/messages/stream`)).status).toBe(204)
  expect(await answerOf(chat)).toMatchObject({ metadata: { interrupted: 'true' } })
})

test('a detached turn stops after ten minutes without a reader', async () => {
  const clock = new TestClock()
  const chat = await openTestChat({ clock })
  chat.model.script(words)
  await sendAndDisconnect(chat)
  await vi.waitFor(async () => {
    clock.advance(600_000)
    expect(await answerOf(chat)).toMatchObject({ metadata: { interrupted: 'true' } })
  }, 10_000)
})

test('a runtime that stops stores the partial answer of a detached turn', async () => {
  const chat = await openTestChat()
  chat.model.script(words)
  await sendAndDisconnect(chat)
  await chat.close()
  const again = await openTestChat({ dataDir: chat.dataDir })
  const { body } = await again.send(`GET ${chat.path}/messages`)
  expect((body.items as Message[])[1]).toMatchObject({ metadata: { interrupted: 'true' } })
})

test('a turn that is not detached ends when its reader disconnects, and cannot be read again', async () => {
  const chat = await openTestChat()
  chat.model.script(words)
  for await (const { event } of chat.streamEvents('count')) if (event === 'token') break
  for (const method of ['GET', 'DELETE'])
    expect(await chat.send(`${method} ${chat.path}/messages/stream`)).toMatchObject({
      status: 404,
      body: { error: { code: 'not_found' } },
    })
  await vi.waitFor(async () => {
    expect(await answerOf(chat)).toMatchObject({ metadata: { interrupted: 'true' } })
  }, 10_000)
})

test('a sender can have at most eight detached turns, even if they are sent at once', async () => {
  const chat = await openTestChat()
  chat.model.respond(() => words)
  const send = async () => {
    const leave = new AbortController()
    onTestFinished(() => leave.abort())
    const body = JSON.stringify({ content: 'count', ...detached })
    const headers = { 'content-type': 'application/json' }
    const { signal } = leave
    const url = `http://localhost${chat.path}/messages/stream`
    return (await chat.runtime.fetch(new Request(url, { method: 'POST', headers, body, signal }))).status
  }
  const statuses = await Promise.all(Array.from({ length: 12 }, send))
  expect(statuses.filter(status => status === 200)).toHaveLength(8)
  expect(statuses.filter(status => status === 429)).toHaveLength(4)
})

test('eight of twelve concurrent detached turns of a sender are accepted', async () => {
  const chat = await openTestChat()
  chat.model.respond(() => words)
  const leave = new AbortController()
  const send = () =>
    chat.runtime.fetch(
      new Request(`http://localhost${chat.path}/messages/stream`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ content: 'x', ...detached }),
        signal: leave.signal,
      }),
    )
  const answers = await Promise.all(Array.from({ length: 12 }, send))
  expect(answers.map(({ status }) => status).sort()).toEqual([...Array(8).fill(200), ...Array(4).fill(429)])
  leave.abort()
})

test('the images of the detached turns of one sender have a limit', async () => {
  const chat = await openTestChat()
  chat.model.respond(() => words)
  const send = async (images: readonly object[]) => {
    const leave = new AbortController()
    const answer = await chat.runtime.fetch(
      new Request(`http://localhost${chat.path}/messages/stream`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ content: 'x', images, ...detached }),
        signal: leave.signal,
      }),
    )
    await answer.body!.getReader().read()
    leave.abort()
    return answer.status
  }
  const images = Array.from({ length: limits.messageImages }, () =>
    imageOf('image/png', limits.imageBytes - 100_000),
  )
  expect([await send(images), await send(images), await send(images)]).toEqual([200, 200, 429])
  expect(await send([])).toBe(200)
})

test('the senders of one workspace can have at most half of the detached turns of the process', async () => {
  const events = async function* (signal: AbortSignal): AsyncGenerator<TurnEvent> {
    await new Promise(resolve => signal.addEventListener('abort', resolve))
  }
  const turns = new DetachedTurns({ clock: new TestClock(), log: silentLog })
  const start = (workspaceId: string, id: string) => {
    const cancel = new AbortController()
    const auth = verifiedContext('apiKey', { ...subject, id })
    const sender = { auth, reauthorize: async () => {}, requestId: 'r' }
    const conversationKey = { workspaceId, conversationId: 'c' }
    return turns.start({
      conversationKey,
      sender,
      imageBytes: 0,
      isReadableBy: async () => true,
      cancel,
      open: async () => events(cancel.signal),
    })
  }
  for (let at = 0; at < 16; at++) await start('w', `key ${at % 4}`)
  await expect(start('w', 'key 5')).rejects.toMatchObject({ code: 'rate_limited' })
  for (let at = 0; at < 16; at++) await start('v', `key ${6 + (at % 4)}`)
  await expect(start('u', 'key 11')).rejects.toMatchObject({ code: 'rate_limited' })
  await turns.close()
})

/** Opens a conversation of a key in a runtime that requires keys, with a model. */
async function openWithKeys() {
  const model = await startChatServer()
  onTestFinished(() => model.close())
  const clock = new TestClock()
  const runtime = { allowedEndpoints: ['127.0.0.1'] }
  const auth = { mode: 'apiKey', anonymousPolicy: 'reject' }
  const wb = await open({ clock, config: { auth, runtime } })
  const { workspaceId } = await makeWorkspace({ call: wb.callAsOperator })
  const params = { workspaceId }
  const service = { name: 'fake', provider: 'ollama', modelName: 'a', endpointBaseUrl: model.url }
  const { llmServiceId } = await wb.callAsOperator(llmServices.create, { params, body: service })
  const { agentId } = await wb.callAsOperator(agents.create, {
    params,
    body: { name: 'maven', llmServiceId },
  })
  const place = `/api/v1/workspaces/${workspaceId}`
  const keyOf = async (label: string) => {
    const { body } = await wb.sendAsOperator(`POST ${place}/api-keys`, { label, role: 'editor' })
    const { keyId } = body.key as { keyId: string }
    return { keyId, headers: { authorization: `Bearer ${body.plaintext}` } }
  }
  const [ada, bob] = [await keyOf('ada'), await keyOf('bob')]
  const list = `${place}/agents/${agentId}/conversations`
  const { conversationId } = (await wb.send(`POST ${list}`, {}, ada.headers)).body
  const path = `${list}/${conversationId}`
  const revoke = () => wb.sendAsOperator(`DELETE ${place}/api-keys/${ada.keyId}`)
  return { wb, model, clock, path, ada, bob, revoke }
}

test("only the sender can read and stop a detached turn, which ends when the sender's key is revoked", async () => {
  const { wb, model, clock, path, ada, bob, revoke } = await openWithKeys()
  model.script({ text: 'one two three four five', silentAfter: 3 })
  const leave = new AbortController()
  const sent = await wb.runtime.fetch(
    new Request(`http://localhost${path}/messages/stream`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...ada.headers },
      body: JSON.stringify({ content: 'count', ...detached }),
      signal: leave.signal,
    }),
  )
  for await (const { event } of readEvents(sent.body!, leave.signal)) if (event === 'token') break
  leave.abort()

  for (const method of ['GET', 'DELETE'])
    expect((await wb.send(`${method} ${path}/messages/stream`, undefined, bob.headers)).status).toBe(404)
  for await (const { event } of readTurn(wb, path, ada.headers)) if (event === 'token') break
  await revoke()
  clock.advance(2_000)
  model.release()
  await vi.waitFor(async () => {
    const { body } = await wb.sendAsOperator(`GET ${path}/messages`)
    expect((body.items as Message[])[1]).toMatchObject({ metadata: { interrupted: 'true' } })
  }, 10_000)
})

test.each([
  ['an answer is not returned', []],
  ['a tool is not called, and no answer is returned', [{ name: 'list_kbs', arguments: {} }]],
])('if the key is revoked while the model writes, %s', async (_, toolCalls) => {
  const { wb, model, path, ada, revoke } = await openWithKeys()
  model.respond(async () => {
    await revoke()
    return { text: 'one two three', toolCalls }
  })
  const { status, text } = await wb.send(`POST ${path}/messages`, { content: 'count' }, ada.headers)
  expect(status, text).toBe(401)
  expect(model.received).toHaveLength(1)
})
