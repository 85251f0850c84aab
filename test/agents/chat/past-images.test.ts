import { expect, test } from 'vitest'
import type { History } from '../../../src/agents/chat/history.ts'
import { PastImages } from '../../../src/agents/chat/past-images.ts'
import type { PastTurn } from '../../../src/agents/chat/past-turns.ts'
import type { RowStore } from '../../../src/storage/rows.ts'

const place = { workspaceId: 'w', agentId: 'a', conversationId: 'c' }
const bytes = 40

/** Creates a history of questions with one image each, and records the messages whose images are read. */
function createHistory(messageIds: readonly string[]) {
  const read: string[] = []
  const rows = {
    async list(_table: unknown, { prefix }: { prefix: string[] }) {
      read.push(prefix[2]!)
      return [{ row: { mediaType: 'image/png', data: 'aaaa' } }]
    },
  } as unknown as RowStore
  const turns = messageIds.map(
    messageId =>
      ({ rows: [{ messageId, content: '', images: [{ bytes }] }], messages: [] }) as unknown as PastTurn,
  )
  return { read, rows, history: { turns, messages: [] } as unknown as History }
}

test('concurrent turns share a limit on images of earlier questions', async () => {
  const images = new PastImages(bytes * 3)
  const { read, rows, history } = createHistory(['one', 'two'])
  const from = { rows, conversationKey: place, promptTokensMax: 100_000 }
  const [first] = await Promise.all([images.add(history, [], from), images.add(history, [], from)])
  expect(read.toSorted()).toEqual(['one', 'two', 'two'])
  expect((await images.add(history, [], from)).history.messages).toEqual([])
  first!.release()
  first!.release()
  read.length = 0
  await Promise.all([images.add(history, [], from), images.add(history, [], from)])
  expect(read.toSorted()).toEqual(['one', 'two'])
})

test('images that do not fit into the context window are not read', async () => {
  const { read, rows, history } = createHistory(['one', 'two'])
  await new PastImages().add(history, [], { rows, conversationKey: place, promptTokensMax: 1_500 })
  expect(read).toEqual(['two'])
})
