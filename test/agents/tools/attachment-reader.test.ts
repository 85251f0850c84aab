import { expect, test } from 'vitest'
import { AttachmentReader } from '../../../src/agents/tools/attachment-reader.ts'
import type { RowStore } from '../../../src/storage/rows.ts'
import type { ConversationRow } from '../../../src/storage/tables.ts'

test('the index of a text counts toward the memory limit for attachments', async () => {
  const text = Array.from({ length: 1_000 }, (_, at) => `w${at}`).join(' ')
  const read: string[] = []
  const rows = {
    async list(_table: unknown, { prefix: [workspaceId, conversationId] }: { prefix: string[] }) {
      const attachmentId = `of ${conversationId}`
      return [{ row: { workspaceId, conversationId, attachmentId, filename: 'a', textChars: text.length } }]
    },
    async get(_table: unknown, key: string[]) {
      read.push(key[1]!)
      return { row: { text, chunkEnds: [text.length] } }
    },
  } as unknown as RowStore
  const reader = new AttachmentReader(rows, 200_000)
  const textOf = async (conversationId: string) => {
    const conversation = { workspaceId: 'w', conversationId, attached: { count: 1, textChars: text.length } }
    return (await reader.read(conversation as unknown as ConversationRow))[0]!
  }
  const [one, two] = [await textOf('one'), await textOf('two')]
  await textOf('one')
  expect(read).toEqual(['one', 'two'])
  for (const each of [one, two]) expect((await each.scores('w7')).size).toBe(1)
  await textOf('two')
  expect(read).toEqual(['one', 'two'])
  await textOf('one')
  expect(read).toEqual(['one', 'two', 'one'])
})
