import { describe, expect, test } from 'vitest'
import { refusals } from '../../fakes/chat-server.ts'
import { type Chatting, chatting, dataOf, shapeOf } from '../../harness/chatting.ts'

/** What is stored of the conversation. */
async function kept({ send, path }: Chatting): Promise<unknown[]> {
  return (await send(`GET ${path}/messages`)).body.items as unknown[]
}

const open = { enabled: false }

describe('what stands in the way of the model leaves no trace', () => {
  test('S7.3-chat_disabled: an agent without a service, where no chat provider works', async () => {
    const chat = await chatting({ agent: { llmServiceId: null }, config: { chat: open } })
    for (const route of ['messages', 'messages/stream']) {
      const { status, body } = await chat.send(`POST ${chat.path}/${route}`, { content: 'hi' })
      expect({ status, body }).toMatchObject({ status: 503, body: { error: { code: 'chat_disabled' } } })
    }
    expect(await kept(chat)).toEqual([])
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
  ])('%s: a send is refused, and a stream says so as its only event', async (_id, service, code, status) => {
    const chat = await chatting({ service })
    const sent = await chat.send(`POST ${chat.path}/messages`, { content: 'hi' })
    expect(sent).toMatchObject({ status, body: { error: { code } } })
    const events = await chat.stream('hi')
    expect(events).toMatchObject([{ event: 'stream-error', data: { code, status } }])
    expect(chat.model.received).toEqual([])
    expect(await kept(chat)).toEqual([])
  })

  test.each([
    ['S7.3-llm_model_not_chat', 'notChat', 'llm_model_not_chat'],
    ['S7.3-llm_model_unavailable', 'unknownModel', 'llm_model_unavailable'],
  ] as const)('%s: what the provider says definitively refuses a send', async (_id, refusal, code) => {
    const chat = await chatting()
    chat.model.script(refusals[refusal], refusals[refusal])
    const sent = await chat.send(`POST ${chat.path}/messages`, { content: 'hi' })
    expect(sent).toMatchObject({ status: 422, body: { error: { code } } })
    expect(await kept(chat)).toEqual([])
    // A stream has told the message of the user by then.
    const events = await chat.stream('hi')
    expect(shapeOf(events)).toEqual(['user-message', 'error'])
    expect(dataOf(events, 'error')[0]!.metadata).toMatchObject({ finish_reason: 'error' })
    expect(JSON.stringify(events)).not.toContain('sk-planted')
  })

  test("S7.3-chat_message_not_found: a message that is replaced is not there, or not the user's", async () => {
    const chat = await chatting()
    const [done] = dataOf(await chat.stream('hi'), 'done')
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
    expect(await kept(chat)).toHaveLength(2)
  })

  test.each([
    [{ content: '' }, 'content'],
    [{ content: 'x'.repeat(32_001) }, 'content'],
    [{}, 'content'],
    [{ content: 'x', replaces: 'no' }, 'replaces'],
    [{ content: 'x', approvals: 'yes' }, 'approvals'],
  ])('bad input %# names its field', async (json, field) => {
    const chat = await chatting()
    for (const route of ['messages', 'messages/stream']) {
      const { status, body } = await chat.send(`POST ${chat.path}/${route}`, json)
      expect(status).toBe(400)
      expect((body.error as { message: string }).message).toContain(field)
    }
    expect(await kept(chat)).toEqual([])
  })
})

test('a conversation that is deleted in mid-answer ends the turn with an answer that nobody keeps', async () => {
  const chat = await chatting()
  chat.model.script({ text: 'one two three four', silentAfter: 3 })
  let end: unknown
  for await (const told of chat.streaming('count')) {
    if (told.event === 'token') {
      await chat.send(`DELETE ${chat.path}`)
      chat.model.release()
    }
    end = told
  }
  expect(end).toMatchObject({ event: 'error', data: { metadata: { finish_reason: 'error' } } })
})
