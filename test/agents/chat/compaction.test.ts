import { expect, test } from 'vitest'
import type { AnsweringModel } from '../../../src/agents/chat/answering-model.ts'
import { Compactions } from '../../../src/agents/chat/compactions.ts'
import { openHistory } from '../../../src/agents/chat/history.ts'
import { summarize } from '../../../src/agents/chat/summarize.ts'
import { switchVersion } from '../../../src/agents/chat/switch-version.ts'
import { DataTags } from '../../../src/agents/chat/system-prompt.ts'
import { systemClock } from '../../../src/base/clock.ts'
import type { ChatClient, Completion } from '../../../src/models/chat/completion.ts'
import type { RowStore } from '../../../src/storage/rows.ts'
import { type MessageRow, tables } from '../../../src/storage/tables.ts'
import { makeAgent, makeConversation, messageRow } from '../../harness/agents.ts'
import { open } from '../../harness/runtime.ts'

const log = { debug() {}, info() {}, warn() {}, error: (facts: object) => expect(facts).toBeUndefined() }
const completion: Completion = {
  text: 'They spoke of harbors.',
  reasoning: '',
  reasoningTokens: null,
  toolCalls: [],
  finishReason: 'stop',
  tokenCount: null,
  promptTokens: 500,
  completionTokens: 6,
  costUsd: 0.01,
}

/** A model that does not answer until it is aborted. */
const hangs: ChatClient['complete'] = (_, { signal }) =>
  new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))

/**
 * Creates a conversation of turns with about 400 tokens each, and a model whose context window has room for few
 * of them.
 */
async function createConversation(turns: number) {
  let store!: RowStore
  const opened = await open({
    rows: own => {
      store = own
      return own
    },
  })
  const conversation = await makeConversation(opened, await makeAgent(opened))
  const text = 'The harbor is open. '.repeat(30)
  const rows = Array.from({ length: turns }, (_, at): MessageRow[] => [
    messageRow(conversation, 4 * at, { content: `Question ${at}. ${text}` }),
    messageRow(conversation, 4 * at + 1, {
      role: 'agent',
      toolCallPayload: { toolCalls: [{ id: 'call', name: 'search_kb', arguments: '{}' }] },
      metadata: { finish_reason: 'tool_calls' },
    }),
    messageRow(conversation, 4 * at + 2, {
      role: 'tool',
      content: null,
      toolId: 'search_kb',
      toolResponse: { toolCallId: 'call', content: 'A passage.', passages: [passage(at + 1)] },
    }),
    messageRow(conversation, 4 * at + 3, { role: 'agent', content: `Answer ${at}. ${text}` }),
  ]).flat()
  await store.atomic(rows.map(row => ({ op: 'insert', table: tables.messages, row })))
  const dataTags = new DataTags()
  const read = async () =>
    (await openHistory(store, conversation)).read({ tokens: 100_000, dataTags, replaced: [], check })
  /** Starts a summary and waits for it. */
  const compact = async (complete: ChatClient['complete'], contextTokens = 6_000) => {
    const compactions = new Compactions({ rows: store, clock: systemClock, log, openPassageCheck })
    const model = { model: 'a', contextTokens, maxTokens: 1_000, chat: { complete } }
    compactions.startIfNeeded({
      ...conversation,
      caller,
      model: model as unknown as AnsweringModel,
      hasTools: true,
    })
    return compactions
  }
  const done = async (compactions: Compactions) => {
    await compactions.whenIdle()
    return (await read()).summary
  }
  return { store, conversation, rows, read, compact, done }
}

/** A check of a workspace without row-level access. */
const check = { seesAll: true, isVisible: async () => true }
const openPassageCheck = async () => check
const caller = {
  rowAccess: async () => {
    throw new Error('not called')
  },
}

/** Returns the methods of a store as an object, so that a test can replace one of them. */
function methodsOf(store: RowStore): RowStore {
  const [get, list] = [store.get.bind(store), store.list.bind(store)]
  return {
    get,
    list,
    count: store.count.bind(store),
    measure: store.measure.bind(store),
    atomic: store.atomic.bind(store),
    feed: store.feed,
  }
}

function passage(number: number) {
  const [knowledgeBaseId, chunkId] = ['base', `chunk ${number}`]
  const place = { documentId: null, chunkIndex: null, title: null, sourceFilename: null, page: null }
  return { number, knowledgeBaseId, chunkId, ...place }
}

test('a summary covers the oldest turns, and their citations remain known', async () => {
  const { read, compact, done, rows } = await createConversation(8)
  const before = await read()
  const summary = await done(await compact(async () => completion))
  expect(summary).toMatchObject({ text: 'They spoke of harbors.' })
  const after = await read()
  expect(after.turns.length).toBeLessThan(before.turns.length)
  expect(after.turns.at(-1)).toEqual(before.turns.at(-1))
  expect(summary!.coveredCount + after.turns.flatMap(turn => turn.rows).length).toBe(rows.length)
  // Later citations are numbered from the highest number.
  expect(summary!.lastCitation).toMatchObject({ number: 8 })
  expect(after.citations).toContainEqual(passage(8))
})

test('a short conversation is not summarized', async () => {
  const { compact, done } = await createConversation(2)
  const unexpected = () => Promise.reject(new Error('the model was called'))
  expect(await done(await compact(unexpected))).toBeUndefined()
})

test('if a covered message is deleted while the model writes, the summary is dropped', async () => {
  const { store, compact, done, rows } = await createConversation(8)
  const deletingAll = async () => {
    await store.atomic(
      rows.map(({ workspaceId, conversationId, messageId }) => ({
        op: 'delete',
        table: tables.messages,
        key: [workspaceId, conversationId, messageId],
      })),
    )
    return completion
  }
  expect(await done(await compact(deletingAll))).toBeUndefined()
})

/** Stores another version of the first question that is not selected yet. */
async function storeVersion({ store, conversation, rows }: Awaited<ReturnType<typeof createConversation>>) {
  const questionId = rows[0]!.messageId
  const question = messageRow(conversation, 1_000, { content: 'Again.', questionId })
  const { messageId: versionId } = question
  await store.atomic([{ op: 'insert', table: tables.messageVersions, row: { ...question, versionId } }])
  return (through: RowStore) => switchVersion(through, conversation, { questionId, versionId })
}

test('if another version is selected while the model writes, the summary is dropped', async () => {
  const long = await createConversation(8)
  const select = await storeVersion(long)
  const selecting = async () => {
    await select(long.store)
    return completion
  }
  expect(await long.done(await long.compact(selecting))).toBeUndefined()
})

test('a summary that is stored while another version is selected is deleted with the messages it covers', async () => {
  const long = await createConversation(8)
  const { store, read } = long
  const select = await storeVersion(long)
  let summaries = 0
  await select({
    get: (...query) => store.get(...query),
    list: (...query) => store.list(...query),
    count: (...query) => store.count(...query),
    measure: (...query) => store.measure(...query),
    feed: store.feed,
    async atomic(writes) {
      if (summaries++ === 0) expect(await long.done(await long.compact(async () => completion))).toBeDefined()
      return store.atomic(writes)
    },
  })
  const { summary, turns } = await read()
  expect(summary).toBeUndefined()
  expect(turns.map(turn => turn.rows[0]!.content)).toEqual(['Again.'])
})

test('a runtime that closes stops the summary, and questions that no longer fit are listed instead', async () => {
  const long = await createConversation(8)
  const compactions = await long.compact(hangs)
  await compactions.close()
  expect((await long.read()).summary?.text).toMatch(/^The user asked earlier:\n- Question \d\. The harbor/)
  // These turns still fit, so the model can be called after the next turn.
  const short = await createConversation(4)
  await (await short.compact(hangs, 7_600)).close()
  expect((await short.read()).summary).toBeUndefined()
})

test('a summary is canceled by the next question', async () => {
  const { compact, done, conversation } = await createConversation(4)
  const compactions = await compact(hangs, 7_600)
  compactions.interrupt(conversation)
  expect(await done(compactions)).toBeUndefined()
})

test('a conversation of another workspace with the same ID neither stops a summary nor prevents one', async () => {
  const { store, conversation, compact, done } = await createConversation(8)
  const other = { ...conversation, workspaceId: crypto.randomUUID() }
  const compactions = await compact(async (_, { signal }) => {
    compactions.interrupt(other)
    signal.throwIfAborted()
    return completion
  })
  expect(await done(compactions)).toBeDefined()
  const readIn = new Set<unknown>()
  const rows: RowStore = {
    ...methodsOf(store),
    list(table, query) {
      readIn.add(query.prefix[0])
      return store.list(table, query)
    },
  }
  const both = new Compactions({ rows, clock: systemClock, log, openPassageCheck })
  const model = { contextTokens: 6_000, maxTokens: 1_000 } as AnsweringModel
  for (const place of [other, conversation]) both.startIfNeeded({ ...place, caller, model, hasTools: true })
  await both.whenIdle()
  expect(readIn).toEqual(new Set([other.workspaceId, conversation.workspaceId]))
})

test('at most four summaries per workspace are written at once, and 16 in total', async () => {
  const { store } = await createConversation(0)
  const pending: (() => void)[] = []
  const list: RowStore['list'] = () => new Promise(resolve => pending.push(() => resolve([])))
  const rows = { ...methodsOf(store), list }
  const compactions = new Compactions({ rows, clock: systemClock, log, openPassageCheck })
  const model = { model: 'a', contextTokens: 6_000, maxTokens: 1_000 } as unknown as AnsweringModel
  for (let workspace = 0; workspace < 6; workspace++)
    for (let at = 0; at < 10; at++) {
      const place = { workspaceId: `w${workspace}`, conversationId: `c${at}` }
      compactions.startIfNeeded({ ...place, caller, model, hasTools: true })
      expect(pending.length).toBeLessThanOrEqual(4 * (workspace + 1))
    }
  expect(pending).toHaveLength(16)
  for (const settle of pending) settle()
  await compactions.whenIdle()
})

test('a summary has a maximum length, and so does its input', async () => {
  const { compact, done } = await createConversation(40)
  const sent: string[] = []
  const complete: ChatClient['complete'] = async messages => {
    sent.push(...messages.map(({ content }) => content!))
    return { ...completion, text: 'Many words. '.repeat(2_000) }
  }
  const summary = await done(await compact(complete))
  expect(sent).toHaveLength(2)
  expect(Buffer.byteLength(sent.join(''))).toBeLessThanOrEqual((3 * 6_000) / 4)
  expect(Buffer.byteLength(summary!.text)).toBeLessThanOrEqual((3 * 6_000) / 16)
})

test.each([
  [{}, { prompt_tokens: '500', completion_tokens: '6', cost_usd: '0.01' }],
  [{ promptTokens: null, completionTokens: null, costUsd: null }, {}],
])('a summary from an answer with %j has the metadata %j', async (fields, metadata) => {
  const chat = { complete: async () => ({ ...completion, ...fields }) }
  const model = { model: 'a', contextTokens: 6_000, maxTokens: 1_000, chat } as unknown as AnsweringModel
  const { signal } = new AbortController()
  const summary = await summarize(undefined, [], { model, clock: systemClock, signal })
  expect(summary.metadata).toEqual({ summary_by: 'model', model: 'a', ...metadata })
})
