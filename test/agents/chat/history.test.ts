import { expect, test } from 'vitest'
import { openHistory } from '../../../src/agents/chat/history.ts'
import { DataTags } from '../../../src/agents/chat/system-prompt.ts'
import { openEmbeddedStore } from '../../../src/storage/open.ts'
import { type MessageRow, tables } from '../../../src/storage/tables.ts'

test('reads a bounded number of long messages, even if they do not fit into the request', async () => {
  const { rows, close } = await openEmbeddedStore({ path: ':memory:' })
  const place = { workspaceId: 'w', conversationId: 'c' }
  const fields = { tokenCount: null, authorId: null, toolId: null, toolCallPayload: null, toolResponse: null }
  const turns = Array.from({ length: 40 }, (_, at): MessageRow[] => {
    const messageTs = (seconds: number) => new Date(1_000 * (2 * at + seconds)).toISOString()
    const question = {
      messageId: `q${at}`,
      messageTs: messageTs(0),
      role: 'user',
      content: 'Hi',
      metadata: {},
    }
    const metadata = { finish_reason: 'error' }
    const failed = { messageId: `a${at}`, messageTs: messageTs(1), content: 'x'.repeat(400_000), metadata }
    return [
      { ...place, ...fields, ...question, role: 'user' },
      { ...place, ...fields, ...failed, role: 'agent' },
    ]
  })
  for (const turn of turns)
    await rows.atomic(turn.map(row => ({ op: 'insert', table: tables.messages, row })))
  const history = await (await openHistory(rows, place)).read({
    tokens: 9e15,
    dataTags: new DataTags(),
    replaced: [],
    check: { seesAll: true, isVisible: async () => true },
  })
  const chars = history.turns
    .flatMap(turn => turn.rows)
    .reduce((sum, { content }) => sum + content!.length, 0)
  expect(chars).toBeGreaterThan(7_000_000)
  expect(chars).toBeLessThan(10_000_000)
  await close()
})
