import { expect, test } from 'vitest'
import type { RowStore, Write } from '../../../src/storage/rows.ts'
import { tables } from '../../../src/storage/tables.ts'
import { eventData, openTestChat, type TestChat } from '../../harness/test-chat.ts'

/** Creates a conversation with one question, followed by `count` messages of `chars` characters. */
async function createLongConversation(
  count: number,
  chars: number,
): Promise<{ chat: TestChat; replaces: string }> {
  let store: RowStore | undefined
  const chat = await openTestChat({
    rows: own => {
      store = own
      return own
    },
  })
  const [asked] = eventData(await chat.stream('first'), 'user-message')
  const { workspaceId, conversationId } = chat.conversation
  const row = (at: number): Write => ({
    op: 'insert',
    table: tables.messages,
    row: {
      workspaceId,
      conversationId,
      messageId: crypto.randomUUID(),
      messageTs: new Date(Date.parse(asked!.messageTs) + 1_000 + at).toISOString(),
      role: 'tool',
      content: 'x'.repeat(chars),
      tokenCount: null,
      metadata: {},
    },
  })
  await store!.atomic(Array.from({ length: count }, (_, at) => row(at)))
  return { chat, replaces: asked!.messageId }
}

test.each([
  ['messages', 1_000, 1, '1000 or more messages follow the question'],
  ['characters', 33, 500_000, 'more than 16000000 characters follow the question'],
])('a send that replaces too many %s is rejected and changes nothing', async (_, count, chars, told) => {
  const { chat, replaces } = await createLongConversation(count, chars)
  for (const line of [`POST ${chat.path}/messages`, `POST ${chat.path}/messages/stream`]) {
    const { status, body } = await chat.send(line, { content: 'again', replaces })
    expect({ status, error: body.error }).toMatchObject({
      status: 400,
      error: { code: 'validation_error', message: told },
    })
  }
  expect(chat.model.received).toHaveLength(1)
  const { body } = await chat.send(`GET ${chat.path}/messages`)
  expect((body.items as object[])[0]).toMatchObject({ content: 'first', messageId: replaces })
})
