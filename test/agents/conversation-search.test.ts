import { expect, onTestFinished, test } from 'vitest'
import { ConversationSearch } from '../../src/agents/conversation-search.ts'
import { emptyMessageFields } from '../../src/agents/messages.ts'
import { Cursors, Pager } from '../../src/storage/cursor.ts'
import { openEmbeddedStore } from '../../src/storage/open.ts'
import { type ConversationRow, type MessageRow, tables } from '../../src/storage/tables.ts'
import { turnsDuring } from '../harness/event-loop.ts'

const createdAt = '2026-01-01T00:00:00.000Z'
const place = { workspaceId: 'workspace', conversationId: 'conversation' }
const signal = new AbortController().signal

const conversation = (conversationId: string): ConversationRow => ({
  ...place,
  conversationId,
  agentId: 'agent',
  title: null,
  knowledgeBaseIds: [],
  createdAt,
  lastActivityAt: createdAt,
  ownerPrincipalId: null,
})

const message = (messageId: string, content: string): MessageRow => ({
  ...emptyMessageFields,
  ...place,
  messageId,
  messageTs: createdAt,
  role: 'user',
  content,
})

async function storeOf(conversations: readonly ConversationRow[], messages: readonly MessageRow[]) {
  const { rows, close } = await openEmbeddedStore({ path: ':memory:' })
  onTestFinished(close)
  await rows.atomic([
    ...conversations.map(row => ({ op: 'insert', table: tables.conversations, row }) as const),
    ...messages.map(row => ({ op: 'insert', table: tables.messages, row }) as const),
  ])
  return rows
}

test('does not block the event loop while it reads a long conversation', async () => {
  const messages = Array.from({ length: 400 }, (_, at) => message(`m${at}`, 'hay '.repeat(8_000)))
  const rows = await storeOf([conversation('conversation')], messages)
  const search = new ConversationSearch(rows, 'needle', signal)
  const { turns, result } = await turnsDuring(search.matches(conversation('conversation')))
  expect(result).toBe(false)
  expect(turns).toBeGreaterThan(5)
})

test('does not block the event loop while it reads many short conversations', async () => {
  const many = Array.from({ length: 5_000 }, (_, at) => conversation(`c${at}`))
  const rows = await storeOf(many, [])
  const pager = new Pager(rows, new Cursors('a key of a store'))
  const list = { index: 'byWorkspace', prefix: ['workspace'], descending: true }
  const search = new ConversationSearch(rows, 'needle', signal)
  const page = pager.searchPage(tables.conversations, list, { limit: 50 }, search)
  expect((await turnsDuring(page)).turns).toBeGreaterThan(5)
})

test('ends when its caller disconnects', async () => {
  const messages = Array.from({ length: 400 }, (_, at) => message(`m${at}`, 'hay '.repeat(8_000)))
  const rows = await storeOf([conversation('conversation')], messages)
  const leave = new AbortController()
  const finding = new ConversationSearch(rows, 'needle', leave.signal).matches(conversation('conversation'))
  leave.abort()
  await expect(finding).rejects.toThrow('aborted')
})

test('reads long runs of combining marks in linear time', async () => {
  const rows = await storeOf(
    [conversation('conversation')],
    [message('m1', `a${'\u0301\u0323'.repeat(250_000)} needle`), message('m2', 'Cafe\u0301')],
  )
  const startedAt = performance.now()
  expect(
    await new ConversationSearch(rows, 'NEEDLE café', signal).matches(conversation('conversation')),
  ).toBe(true)
  expect(performance.now() - startedAt).toBeLessThan(5_000)
})
