import fc from 'fast-check'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { readCurrentVersion, readReplacedVersion } from '../../../src/agents/chat/current-version.ts'
import { switchVersion } from '../../../src/agents/chat/switch-version.ts'
import { Transcript } from '../../../src/agents/chat/transcript.ts'
import { systemClock } from '../../../src/base/clock.ts'
import { KeyedQueue } from '../../../src/base/keyed-queue.ts'
import type { Message, MessageVersion } from '../../../src/contract/conversations.ts'
import { openEmbeddedStore } from '../../../src/storage/open.ts'
import type { RowStore } from '../../../src/storage/rows.ts'
import { type ConversationRow, tables } from '../../../src/storage/tables.ts'
import { type ChatStep, refusals } from '../../fakes/chat-server.ts'
import { messageRow } from '../../harness/agents.ts'
import { eventData, eventNames, openTestChat, type TestChat } from '../../harness/test-chat.ts'

async function messagesOf({ send, path }: TestChat): Promise<Message[]> {
  return (await send(`GET ${path}/messages`)).body.items as Message[]
}

async function contentsOf(chat: TestChat): Promise<(string | null)[]> {
  return (await messagesOf(chat)).map(({ content }) => content)
}

async function versionsOf({ send, path }: TestChat, messageId: string): Promise<MessageVersion[]> {
  const { status, body } = await send(`GET ${path}/messages/${messageId}/versions`)
  expect(status).toBe(200)
  return body.items as MessageVersion[]
}

/** Creates a conversation with two answered questions. */
async function createConversation(...more: ChatStep[]) {
  const chat = await openTestChat()
  chat.model.script({ text: 'first' }, { text: 'second' }, ...more)
  const [one] = eventData(await chat.stream('one'), 'user-message')
  const [two] = eventData(await chat.stream('two'), 'user-message')
  return { chat, one: one!.messageId, two: two!.messageId }
}

const before = ['one', 'first', 'two', 'second']
const refused = { status: 400, body: {} }

describe('a version whose answer is incomplete does not replace the earlier one', () => {
  test('after the provider rejects a stream, which ends with a stored error', async () => {
    const { chat, two } = await createConversation(refused)
    const events = await chat.stream('two', { replaces: two })
    expect(eventNames(events)).toEqual(['user-message', 'error'])
    expect(await contentsOf(chat)).toEqual(before)
    const [error] = eventData(events, 'error')
    const { status, body } = await chat.send(`GET ${chat.path}/messages/${error!.messageId}`)
    expect({ status, body }).toMatchObject({ status: 200, body: { metadata: { finish_reason: 'error' } } })
    const versions = await versionsOf(chat, two)
    expect(versions.map(({ isCurrent, answer }) => [isCurrent, answer?.metadata.finish_reason])).toEqual([
      [true, 'stop'],
      [false, 'error'],
    ])
  })

  test('after the provider rejects a plain send, which leaves no version', async () => {
    const { chat, two } = await createConversation(refusals.notChat)
    const { status } = await chat.send(`POST ${chat.path}/messages`, { content: 'two', replaces: two })
    expect(status).toBe(422)
    expect(await contentsOf(chat)).toEqual(before)
    expect(await versionsOf(chat, two)).toHaveLength(1)
  })

  test('after its reader disconnects, and the partial answer is kept as a version', async () => {
    const { chat, two } = await createConversation({ text: 'one two three', silentAfter: 3 })
    for await (const { event } of chat.streamEvents('two', { replaces: two })) if (event === 'token') break
    await vi.waitFor(async () => {
      const [, version] = await versionsOf(chat, two)
      expect(version).toMatchObject({ isCurrent: false, answer: { metadata: { interrupted: 'true' } } })
    }, 10_000)
    expect(await contentsOf(chat)).toEqual(before)
  })

  test('and the next turn continues the earlier version', async () => {
    const { chat, two } = await createConversation(refused, { text: 'third' })
    await chat.stream('two', { replaces: two })
    await chat.stream('three')
    const sent = chat.model.received.at(-1)!.body.messages as { content: string }[]
    expect(sent.slice(1).map(({ content }) => content)).toEqual([...before, 'three'])
  })
})

describe('versions of a question', () => {
  test('are listed, and a selected one returns with all messages that followed it', async () => {
    const { chat, one } = await createConversation({ text: 'better' }, { text: 'third' })
    await chat.stream('one, better', { replaces: one })
    await chat.stream('three')
    const after = ['one, better', 'better', 'three', 'third']
    expect(await contentsOf(chat)).toEqual(after)
    const versions = await versionsOf(chat, one)
    expect(versions).toMatchObject([
      {
        message: { content: 'one', metadata: { version_of: one } },
        answer: { content: 'first' },
        isCurrent: false,
      },
      {
        message: { content: 'one, better', metadata: { version_of: one } },
        answer: { content: 'better' },
        isCurrent: true,
      },
    ])
    const select = (messageId: string) => chat.send(`POST ${chat.path}/messages/${messageId}/select`)
    expect(await select(one)).toMatchObject({ status: 200, body: { messageId: one, content: 'one' } })
    expect(await contentsOf(chat)).toEqual(before)
    expect((await select(versions[1]!.message.messageId)).status).toBe(200)
    expect(await contentsOf(chat)).toEqual(after)
  })

  test('are listed with their answers, even if a summary precedes an answer', async () => {
    let store: RowStore | undefined
    const chat = await openTestChat({
      rows: own => {
        store = own
        return own
      },
    })
    chat.model.script({ text: 'first' })
    const [asked] = eventData(await chat.stream('one'), 'user-message')
    const { messageId, messageTs } = asked!
    const fields = { messageId: 'ffffffff-ffff-4fff-bfff-ffffffffffff', messageTs, role: 'system' as const }
    const row = messageRow(chat.conversation, 0, fields)
    await store!.atomic([{ op: 'insert', table: tables.messages, row }])
    expect(await versionsOf(chat, messageId)).toMatchObject([{ answer: { content: 'first' } }])
  })

  test('are listed with at most 20,000 characters of each answer, and a truncated answer is marked', async () => {
    const { chat, two } = await createConversation({ text: 'x'.repeat(20_001), chunksOf: 20_001 })
    await chat.stream('two', { replaces: two })
    const answers = (await versionsOf(chat, two)).map(({ answer }) => answer!)
    expect(answers.map(({ content }) => content!.length)).toEqual([6, 20_000])
    expect(answers.map(({ metadata }) => metadata.content_truncated)).toEqual([undefined, 'true'])
    expect((await messagesOf(chat)).at(-1)!.content).toHaveLength(20_001)
  })

  test('of a question that is not in the conversation cannot be selected', async () => {
    const { chat, one, two } = await createConversation({ text: 'again' }, { text: 'better' })
    await chat.stream('two, again', { replaces: two })
    await chat.stream('one, better', { replaces: one })
    const nested = (await versionsOf(chat, two)).map(({ message }) => message.messageId)
    expect(nested).toHaveLength(2)
    for (const messageId of nested) {
      const { status, body } = await chat.send(`POST ${chat.path}/messages/${messageId}/select`)
      expect([status, body.error]).toMatchObject([
        409,
        { code: 'conflict', hint: `Select version ${one} first.` },
      ])
    }
    expect(await contentsOf(chat)).toEqual(['one, better', 'better'])
  })

  test('can be replaced by the ID of any version', async () => {
    const { chat, two } = await createConversation({ text: 'again' }, { text: 'and again' })
    await chat.stream('two', { replaces: two })
    await chat.stream('two', { replaces: two })
    expect(await contentsOf(chat)).toEqual(['one', 'first', 'two', 'and again'])
    expect(await versionsOf(chat, two)).toHaveLength(3)
  })

  test('are at most 50', async () => {
    const { chat, two } = await createConversation()
    chat.model.respond(() => refused)
    for (let n = 1; n < 50; n++) await chat.stream('two', { replaces: two })
    const { status, body } = await chat.send(`POST ${chat.path}/messages`, { content: 'x', replaces: two })
    expect({ status, body }).toMatchObject({ status: 400, body: { error: { code: 'validation_error' } } })
    expect(await versionsOf(chat, two)).toHaveLength(50)
  })

  test('are at most 50, even if several are sent at once, and the model calls of rejected ones end', async () => {
    const { chat, two } = await createConversation()
    chat.model.respond(() => refused)
    for (let n = 1; n < 48; n++) await chat.stream('two', { replaces: two })
    chat.model.respond(() => ({ text: 'slow answer', silentAfter: 1 }))
    const sent = Array.from({ length: 8 }, () => chat.stream('two', { replaces: two }))
    await vi.waitFor(() => expect(chat.model.abandoned).toBe(6))
    chat.model.release()
    const shapes = (await Promise.all(sent)).map(eventNames)
    expect(shapes.filter(shape => shape.includes('done'))).toHaveLength(2)
    expect(shapes.filter(shape => shape.join() === 'stream-error')).toHaveLength(6)
    expect(await versionsOf(chat, two)).toHaveLength(50)
  })

  test('include a later question whose answer is in progress, and its answer is not stored', async () => {
    const { chat, one } = await createConversation(
      { text: 'late answer here', silentAfter: 2 },
      { text: 'better' },
    )
    const events = []
    for await (const event of chat.streamEvents('three')) {
      events.push(event)
      if (event.event !== 'token' || events.length > 2) continue
      await chat.send(`POST ${chat.path}/messages`, { content: 'one, better', replaces: one })
      chat.model.release()
    }
    expect(events.at(-1)).toMatchObject({
      event: 'error',
      data: { metadata: { error_message: expect.stringMatching(/^the answer could not be stored: /) } },
    })
    expect(await contentsOf(chat)).toEqual(['one, better', 'better'])
    await chat.send(`POST ${chat.path}/messages/${one}/select`)
    expect(await contentsOf(chat)).toEqual([...before, 'three'])
  })

  test('keep an answer that arrives after they were selected', async () => {
    const { chat, two } = await createConversation({ text: 'late answer here', silentAfter: 2 })
    const events = []
    for await (const event of chat.streamEvents('two, better', { replaces: two })) {
      events.push(event)
      if (event.event !== 'token' || events.length > 2) continue
      const [, version] = await versionsOf(chat, two)
      const selected = await chat.send(`POST ${chat.path}/messages/${version!.message.messageId}/select`)
      expect(selected.status).toBe(200)
      chat.model.release()
    }
    expect(events.at(-1)).toMatchObject({ event: 'done' })
    expect(await contentsOf(chat)).toEqual(['one', 'first', 'two, better', 'late answer here'])
  })

  test('are deleted with their conversation', async () => {
    const { chat, two } = await createConversation({ text: 'again' })
    await chat.stream('two', { replaces: two })
    await chat.send(`DELETE ${chat.path}`)
    await chat.close()
    const { rows, close } = await openEmbeddedStore({ path: `${chat.dataDir}/workbase.db` })
    const { workspaceId, conversationId } = chat.conversation
    expect(await rows.count(tables.messageVersions, 'byVersion', [workspaceId, conversationId])).toBe(0)
    await close()
  })
})

test('the earliest question that read untrusted text counts, even if a later one stored its result first', async () => {
  const { rows, close } = await openEmbeddedStore({ path: ':memory:' })
  const place = { workspaceId: 'w', agentId: 'a', conversationId: 'c' }
  const at = '2026-01-01T00:00:00.000Z'
  const facts = {
    title: null,
    knowledgeBaseIds: [],
    createdAt: at,
    lastActivityAt: at,
    ownerPrincipalId: null,
  }
  const row = { ...place, ...facts }
  await rows.atomic([{ op: 'insert', table: tables.conversations, row }])
  const parts = { rows, clock: systemClock, writes: new KeyedQueue() }
  const call = { id: 'call', name: 'fetch', arguments: '{}' }
  const result = { content: 'text', passages: [], sources: [] }
  const [earlier, later] = [1, 2].map(
    day => new Transcript(parts, row, { lastAt: `2100-01-0${day}T00:00:00.000Z`, questionId: undefined }),
  )
  const question = await earlier!.storeQuestion('one', false)
  await later!.storeQuestion('two', false)
  await later!.storeResult(call, result, true)
  await earlier!.storeResult(call, result, true)
  const stored = await rows.get(tables.conversations, ['w', 'c'])
  expect(stored?.row.untrustedSince).toBe(question.messageTs)
  await close()
})

test('security: a turn does not write to a conversation that another caller created with the same ID', async () => {
  const { rows, close } = await openEmbeddedStore({ path: ':memory:' })
  onTestFinished(close)
  const at = '2026-01-01T00:00:00.000Z'
  const row: ConversationRow = {
    ...{ workspaceId: 'w', agentId: 'a', conversationId: 'c' },
    title: null,
    knowledgeBaseIds: [],
    createdAt: at,
    lastActivityAt: at,
    ownerPrincipalId: 'alice',
  }
  const parts = { rows, clock: systemClock, writes: new KeyedQueue() }
  const transcript = new Transcript(parts, row, { lastAt: undefined, questionId: undefined })
  await rows.atomic([{ op: 'insert', table: tables.conversations, row: { ...row, ownerPrincipalId: 'bob' } }])
  await expect(transcript.storeQuestion('secret', false)).rejects.toMatchObject({
    code: 'conversation_not_found',
  })
  expect(await rows.count(tables.messages, 'byConversation', ['w', 'c'])).toBe(0)
})

/** An expected conversation: its questions in order. */
type ExpectedConversation = readonly { readonly id: string; readonly question: string }[]

test('after any sequence of questions, versions and selections, the conversation is that of the last selection', async () => {
  const { rows, close } = await openEmbeddedStore({ path: ':memory:' })
  const at = '2026-01-01T00:00:00.000Z'
  const action = fc.record({
    what: fc.constantFrom('ask', 'replace', 'fail', 'select'),
    which: fc.nat(),
  })
  await fc.assert(
    fc.asyncProperty(fc.array(action, { maxLength: 14 }), async actions => {
      const conversationId = crypto.randomUUID()
      const place = { workspaceId: 'w', agentId: 'a', conversationId }
      const row: ConversationRow = {
        ...place,
        title: null,
        knowledgeBaseIds: [],
        createdAt: at,
        lastActivityAt: at,
        ownerPrincipalId: null,
      }
      await rows.atomic([{ op: 'insert', table: tables.conversations, row }])
      let line: ExpectedConversation = []
      /**
       * Versions of each question. Each has the conversation from that question on, as it was when last
       * selected.
       */
      const versions = new Map<string, Map<string, ExpectedConversation>>()
      const leave = (index: number) => {
        const { id, question } = line[index]!
        versions.get(question)!.set(id, line.slice(index))
      }
      const say = async (questionId: string | undefined, isComplete: boolean) => {
        const stored = await rows.list(tables.messages, {
          index: 'byConversation',
          prefix: ['w', conversationId],
          limit: 1,
          descending: true,
        })
        const start = { lastAt: stored[0]?.row.messageTs, questionId }
        const transcript = new Transcript({ rows, clock: systemClock, writes: new KeyedQueue() }, row, start)
        const { messageId } = await transcript.storeQuestion('question', false)
        await (isComplete ? transcript.storeAnswer('answer', {}) : transcript.storeFailedAnswer('failed', {}))
        return messageId
      }
      for (const { what, which } of actions) {
        const index = line.length === 0 ? 0 : which % line.length
        const chosen = line[index]
        if (what === 'ask' || !chosen) {
          const id = await say(undefined, true)
          line = [...line, { id, question: id }]
          versions.set(id, new Map([[id, []]]))
        } else if (what === 'select') {
          const kept = [...versions.get(chosen.question)!.keys()]
          const versionId = kept[which % kept.length]!
          leave(index)
          await switchVersion(rows, place, { questionId: chosen.question, versionId })
          line = [...line.slice(0, index), ...versions.get(chosen.question)!.get(versionId)!]
        } else {
          const { questionId } = await readReplacedVersion(rows, place, chosen.id)
          const id = await say(questionId, what === 'replace')
          const own = [{ id, question: chosen.question }]
          versions.get(chosen.question)!.set(id, own)
          if (what === 'fail') continue
          leave(index)
          line = [...line.slice(0, index), ...own]
        }
      }
      const stored = await rows.list(tables.messages, {
        index: 'byConversation',
        prefix: ['w', conversationId],
        limit: 1_000,
      })
      const questions = stored.filter(message => message.row.role === 'user')
      expect(questions.map(message => message.row.messageId)).toEqual(line.map(({ id }) => id))
      expect(stored).toHaveLength(2 * line.length)
      for (const { id, question } of line)
        expect((await readCurrentVersion(rows, place, question)).rows[0].messageId).toBe(id)
    }),
    { numRuns: 60 },
  )
  await close()
})
