import { describe, expect, test } from 'vitest'
import { refusals } from '../../fakes/chat-server.ts'
import { eventData, eventNames, openTestChat, type TestChat } from '../../harness/test-chat.ts'

/** Returns the stored messages of the conversation. */
async function storedMessages({ send, path }: TestChat): Promise<unknown[]> {
  return (await send(`GET ${path}/messages`)).body.items as unknown[]
}

const open = { enabled: false }

describe('a message that cannot reach the model is not stored', () => {
  test('S7.3-chat_disabled: fails with chat_disabled for an agent without a service if there is no default chat provider', async () => {
    const chat = await openTestChat({ agent: { llmServiceId: null }, config: { chat: open } })
    for (const route of ['messages', 'messages/stream']) {
      const { status, body } = await chat.send(`POST ${chat.path}/${route}`, { content: 'hi' })
      expect({ status, body }).toMatchObject({ status: 503, body: { error: { code: 'chat_disabled' } } })
    }
    expect(await storedMessages(chat)).toEqual([])
  })

  test.each([
    [
      'S7.3-llm_credential_missing',
      { provider: 'openai', credentialRef: 'env:NOT_SET' },
      'llm_credential_missing',
      503,
    ],
    ['S7.3-llm_provider_unsupported', { provider: 'cohere' }, 'llm_provider_unsupported', 422],
    ['S9-04', { provider: 'huggingface' }, 'llm_provider_unsupported', 422],
  ])(
    '%s: a plain send fails, and a stream sends the error as its only event',
    async (_id, service, code, status) => {
      const chat = await openTestChat({ service })
      const sent = await chat.send(`POST ${chat.path}/messages`, { content: 'hi' })
      expect(sent).toMatchObject({ status, body: { error: { code } } })
      const events = await chat.stream('hi')
      expect(events).toMatchObject([{ event: 'stream-error', data: { code, status } }])
      expect(chat.model.received).toEqual([])
      expect(await storedMessages(chat)).toEqual([])
    },
  )

  test.each([
    ['S7.3-llm_model_not_chat', 'notChat', 'llm_model_not_chat'],
    ['S7.3-llm_model_unavailable', 'unknownModel', 'llm_model_unavailable'],
  ] as const)('%s: a permanent error of the provider fails a plain send', async (_id, refusal, code) => {
    const chat = await openTestChat()
    chat.model.script(refusals[refusal], refusals[refusal])
    const sent = await chat.send(`POST ${chat.path}/messages`, { content: 'hi' })
    expect(sent).toMatchObject({ status: 422, body: { error: { code } } })
    expect(await storedMessages(chat)).toEqual([])
    // By then, a stream has already sent the user message.
    const events = await chat.stream('hi')
    expect(eventNames(events)).toEqual(['user-message', 'error'])
    expect(eventData(events, 'error')[0]!.metadata).toMatchObject({ finish_reason: 'error' })
    expect(JSON.stringify(events)).not.toContain('sk-planted')
  })

  test('S7.3-chat_message_not_found: fails if the message to replace does not exist or is not a user message', async () => {
    const chat = await openTestChat()
    const [done] = eventData(await chat.stream('hi'), 'done')
    for (const replaces of [crypto.randomUUID(), done!.messageId]) {
      const { status, body } = await chat.send(`POST ${chat.path}/messages/stream`, {
        content: 'x',
        replaces,
      })
      expect({ status, body }).toMatchObject({
        status: 404,
        body: { error: { code: 'chat_message_not_found' } },
      })
    }
    expect(await storedMessages(chat)).toHaveLength(2)
  })

  test.each([
    [{ content: '' }, 'content'],
    [{ content: 'x'.repeat(32_001) }, 'content'],
    [{}, 'content'],
    [{ content: 'x', replaces: 'no' }, 'replaces'],
    [{ content: 'x', approvals: 'yes' }, 'approvals'],
  ])('invalid input %# is reported with its field', async (json, field) => {
    const chat = await openTestChat()
    for (const route of ['messages', 'messages/stream']) {
      const { status, body } = await chat.send(`POST ${chat.path}/${route}`, json)
      expect(status).toBe(400)
      expect((body.error as { message: string }).message).toContain(field)
    }
    expect(await storedMessages(chat)).toEqual([])
  })
})

test('a conversation that is deleted during an answer ends the turn with an error, and the answer is not stored', async () => {
  const chat = await openTestChat()
  chat.model.script({ text: 'one two three four', silentAfter: 3 })
  let end: unknown
  for await (const event of chat.streamEvents('count')) {
    if (event.event === 'token') {
      await chat.send(`DELETE ${chat.path}`)
      chat.model.release()
    }
    end = event
  }
  expect(end).toMatchObject({ event: 'error', data: { metadata: { finish_reason: 'error' } } })
})
