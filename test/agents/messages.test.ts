import fc from 'fast-check'
import { expect, test } from 'vitest'
import { anonymousContext } from '../../src/access/subject.ts'
import { Messages } from '../../src/agents/messages.ts'
import { Versions } from '../../src/agents/versions.ts'
import { openCursors, Pager } from '../../src/storage/cursor.ts'
import { openEmbeddedStore } from '../../src/storage/open.ts'
import { type ConversationRow, type MessageRow, tables } from '../../src/storage/tables.ts'
import { messageRow } from '../harness/agents.ts'
import { turnsDuring } from '../harness/event-loop.ts'

const place = { workspaceId: 'w', agentId: 'a', conversationId: 'c' }
const nobody = anonymousContext('disabled')

const kinds: Record<string, Partial<MessageRow>> = {
  user: {},
  answer: { role: 'agent', metadata: { finish_reason: 'stop' } },
  system: { role: 'system' },
  call: { role: 'agent', metadata: { finish_reason: 'tool_calls' } },
  result: { role: 'tool', content: null },
}
const hidden = ['call', 'result']

test('pages are full, ordered, and contain every visible message once, wherever messages are hidden', async () => {
  // Runs of hidden messages that are longer than one read.
  const run = fc.record({
    kind: fc.constantFrom(...Object.keys(kinds)),
    length: fc.integer({ min: 1, max: 70 }),
  })
  await fc.assert(
    fc.asyncProperty(
      fc.array(run, { maxLength: 6 }),
      fc.integer({ min: 1, max: 60 }),
      async (runs, limit) => {
        const sequence = runs.flatMap(({ kind, length }) => Array<string>(length).fill(kind))
        const { rows, close } = await openEmbeddedStore({ path: ':memory:' })
        await rows.atomic(
          sequence.map((kind, n) => ({
            op: 'insert',
            table: tables.messages,
            row: messageRow(place, n, kinds[kind]),
          })),
        )
        const pager = new Pager(rows, await openCursors(rows))
        const conversations = { get: async () => place as unknown as ConversationRow }
        const messages = new Messages({ rows, pager, conversations })
        const walked: string[] = []
        let cursor: string | undefined
        do {
          const page = await messages.list(place, { limit, cursor }, nobody)
          if (page.nextCursor !== null) expect(page.items).toHaveLength(limit)
          walked.push(...page.items.map(({ messageId }) => messageId))
          cursor = page.nextCursor ?? undefined
        } while (cursor !== undefined)
        const visible = sequence.flatMap((kind, n) =>
          hidden.includes(kind) ? [] : messageRow(place, n).messageId,
        )
        expect(walked).toEqual(visible)
        await close()
      },
    ),
    { numRuns: 40 },
  )
})

test('long runs of hidden messages do not block the event loop', async () => {
  const { rows, close } = await openEmbeddedStore({ path: ':memory:' })
  const sequence = ['user', ...Array<string>(5_000).fill('result'), 'answer']
  const written = sequence.map((kind, n) => messageRow(place, n, kinds[kind]))
  await rows.atomic(written.map(row => ({ op: 'insert', table: tables.messages, row }) as const))
  const conversations = { get: async () => place as unknown as ConversationRow }
  const messages = new Messages({ rows, pager: new Pager(rows, await openCursors(rows)), conversations })
  const listed = await turnsDuring(messages.list(place, { limit: 5 }, nobody))
  expect(listed.result.items).toHaveLength(2)
  // Work takes turns of some milliseconds, so their number depends on the machine.
  expect(listed.turns).toBeGreaterThan(2)
  const versions = new Versions({ rows, conversations })
  const question = { ...place, messageId: written[0]!.messageId }
  const { turns, result } = await turnsDuring(versions.list(question, nobody))
  expect(result[0]!.answer?.messageId).toBe(written.at(-1)!.messageId)
  expect(turns).toBeGreaterThan(10)
  await close()
})
