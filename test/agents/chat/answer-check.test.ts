import { expect, test, vi } from 'vitest'
import { AnswerCheck } from '../../../src/agents/chat/answer-check.ts'
import { documents } from '../../../src/contract/documents.ts'
import { kb } from '../../../src/contract/knowledge.ts'
import { mcpServers } from '../../../src/contract/mcp-servers.ts'
import { startMcpServer } from '../../fakes/mcp-server.ts'
import { type FakeSentenceModel, fakeSentenceModel } from '../../fakes/sentence-model.ts'
import { TestClock, type TestRuntime } from '../../harness/runtime.ts'
import { eventData, openTestChat } from '../../harness/test-chat.ts'

const searching = { toolCalls: [{ name: 'search_kb', arguments: { query: 'refunds' } }] }
const faithful = 'Refunds are paid within 14 days of the purchase [1].'
const inOtherWords = 'You get the money back after you return it [1].'
const invented = 'The courier picks up the parcel of every customer at home.'

/** A model that knows some words with the same meaning. */
function createModel(): FakeSentenceModel {
  return fakeSentenceModel(['refunds', 'refunded', 'money', 'back'], ['return', 'returned', 'purchase'])
}

function createHandbook(fields: object = {}) {
  return async ({ call }: TestRuntime, workspaceId: string) => {
    const params = { workspaceId }
    const { knowledgeBaseId } = await call(kb.create, { params, body: { name: 'handbook', ...fields } })
    for (const text of [
      'Refunds are paid within 14 days of the purchase. If it is returned, the money is refunded.',
      'The desk opens at nine, and it is closed on the weekend.',
    ])
      await call(documents.ingest, { params: { ...params, knowledgeBaseId }, body: { text } })
    return { knowledgeBaseIds: [knowledgeBaseId] }
  }
}

function openChat(options: Parameters<typeof openTestChat>[0] = {}) {
  return openTestChat({ prepare: createHandbook(), sentenceModel: createModel(), ...options })
}

/** Returns the marked sentences of an answer; undefined if it was not checked. */
function markedIn({ content, metadata }: { content: string | null; metadata: Record<string, string> }) {
  if (metadata.unsupported === undefined) return undefined
  const ranges = JSON.parse(metadata.unsupported) as { start: number; end: number }[]
  return ranges.map(({ start, end }) => content!.slice(start, end))
}

/** Sends a question that the model answers with a text after a search. Returns the marked sentences. */
async function ask({ model, stream }: Awaited<ReturnType<typeof openChat>>, text: string) {
  model.script(searching, { text })
  const events = await stream('when are refunds paid?')
  return markedIn(eventData(events, 'done')[0]!)
}

test('marks the sentences of an answer that no cited passage supports, and stores the marks', async () => {
  const chat = await openChat()
  expect(await ask(chat, `${faithful} ${inOtherWords} ${invented}`)).toEqual([invented])
  const { body } = await chat.send(`GET ${chat.path}/messages`)
  expect(markedIn((body.items as never[])[1]!)).toEqual([invented])
  expect(await ask(chat, `${faithful} ${inOtherWords}`)).toEqual([])
})

test('marks another number and another name', async () => {
  const chat = await openChat()
  const [number, name] = [
    'Refunds are paid within 30 days of the purchase [1].',
    'You can return it to Anna Berg.',
  ]
  expect(await ask(chat, `${number} ${name}`)).toEqual([number, name])
  expect(await ask(chat, 'Is it paid within 30 days? No, it is not paid in that time [1].')).toEqual([])
})

test('accepts numbers that another built-in tool has returned', async () => {
  const chat = await openChat()
  const answer = `${faithful} The money is returned in 2 documents.`
  expect(await ask(chat, answer)).toEqual(['The money is returned in 2 documents.'])
  chat.model.script({ toolCalls: [{ name: 'count_documents' }] })
  expect(await ask(chat, answer)).toEqual([])
})

test('does not check an answer that can contain text of documents that no search has found', async () => {
  const chat = await openChat()
  chat.model.script({ toolCalls: [{ name: 'list_documents' }] })
  expect(await ask(chat, `${faithful} ${invented}`)).toBeUndefined()
})

test('does not check an answer that can contain text of an MCP tool', async () => {
  const call = () => ({ content: [{ type: 'text' as const, text: invented }] })
  const { url } = await startMcpServer({ tools: [{ name: 'echo', call }] })
  const chat = await openChat({
    async prepare(opened, workspaceId) {
      const body = { label: 'echoes', url }
      const { mcpServerId } = await opened.call(mcpServers.create, { params: { workspaceId }, body })
      const fields = await createHandbook()(opened, workspaceId)
      return { ...fields, toolIds: ['search_kb', `mcp:${mcpServerId}:echo`] }
    },
  })
  const answers = [searching, { text: `${faithful} ${invented}` }]
  chat.model.respond(({ body }) => {
    const { name } = (body.tools as { function: { name: string } }[])
      .map(tool => tool.function)
      .find(tool => tool.name !== 'search_kb')!
    return (body.messages as unknown[]).length === 2 ? { toolCalls: [{ name }] } : answers.shift()!
  })
  const [done] = eventData(await chat.stream('when are refunds paid?'), 'done')
  expect(done!.metadata).toHaveProperty('citations')
  expect(markedIn(done!)).toBeUndefined()
})

test('compares an answer that cites nothing with the passages that were found', async () => {
  const chat = await openChat({ service: { supportsTools: false } })
  chat.model.script({ text: `${faithful.replace(' [1]', '')} ${invented}` })
  const [done] = eventData(await chat.stream('when are refunds paid?'), 'done')
  expect(done!.metadata).not.toHaveProperty('citations')
  expect(markedIn(done!)).toEqual([invented])
  chat.model.script({ text: invented })
  const [greeting] = eventData(await chat.stream('Hello!'), 'done')
  expect(markedIn(greeting!)).toBeUndefined()
})

test.each([
  ['search by meaning is off in the runtime', { sentenceModel: null }, invented],
  [
    'search by meaning is off in the knowledge base',
    { prepare: createHandbook({ semantic: false }) },
    invented,
  ],
  ['the check is off', { config: { chat: { checkAnswers: false } } }, invented],
  ['the answer is not in English', {}, 'Der Kurier holt das Paket bei den Kunden zu Hause ab.'],
])('does not check answers if %s', async (_, options, text) => {
  const chat = await openChat(options)
  expect(await ask(chat, `${text} [1]`)).toBeUndefined()
})

test('does not check an answer that cites a passage of an earlier turn only', async () => {
  const chat = await openChat()
  expect(await ask(chat, faithful)).toEqual([])
  chat.model.script({ text: `${invented} [1]` })
  expect(markedIn(eventData(await chat.stream('and then?'), 'done')[0]!)).toBeUndefined()
})

test('stores the answer unchecked if the sentence model fails', async () => {
  const model = createModel()
  const chat = await openChat({ sentenceModel: model })
  await chat.settle()
  model.failure = new Error('broken')
  expect(await ask(chat, `${faithful} ${invented}`)).toBeUndefined()
  expect(chat.loggedProblems.map(({ message }) => message)).toContain(
    'an answer was not compared with its passages',
  )
})

test('does not check an answer of too many sentences', async () => {
  const chat = await openChat()
  const hostile = 'q w x the\n\n'.repeat(2_000)
  expect(await ask(chat, `${faithful}\n\n${hostile}`)).toBeUndefined()
})

const log = { debug() {}, info() {}, warn() {}, error() {} }
const { signal } = new AbortController()

test('does not compare texts that are too long', async () => {
  const embed = vi.fn()
  const check = new AnswerCheck({ model: { embed }, clock: new TestClock(), log })
  const evidence = { passages: ['It is the end of the day. '.repeat(2_000)], context: '' }
  const checked = check.unsupportedSentences(`${invented} It is so.`, evidence, { workspaceId: 'w', signal })
  expect(await checked).toBeUndefined()
  expect(embed).not.toHaveBeenCalled()
})

test('embeds at most 40 texts at once', async () => {
  const model = createModel()
  const embed = vi.fn(model.embed)
  const check = new AnswerCheck({ model: { embed }, clock: new TestClock(), log })
  const evidence = { passages: ['It is so.\n\n'.repeat(100)], context: '' }
  await check.unsupportedSentences(invented, evidence, { workspaceId: 'w', signal })
  expect(embed.mock.calls.map(([texts]) => texts.length)).toEqual([1, 40, 40, 20])
})

/** Starts checks of answers of the workspaces, with a model that waits for `release`. */
function startChecks(workspaceIds: readonly string[]) {
  const clock = new TestClock()
  const held: { text: string; release: () => void }[] = []
  const embed = async ([text]: readonly string[], options: { signal?: AbortSignal }) => {
    await new Promise<void>((release, reject) => {
      held.push({ text: text!, release })
      options.signal!.addEventListener('abort', () => reject(options.signal!.reason))
    })
    return [new Float32Array(384)]
  }
  const check = new AnswerCheck({ model: { embed }, clock, log })
  const evidence = { passages: ['It is the end of the day.'], context: '' }
  const results = workspaceIds.map((workspaceId, at) =>
    check.unsupportedSentences(`the parcel of the customer${' again'.repeat(at)}`, evidence, {
      workspaceId,
      signal,
    }),
  )
  return { clock, held, results }
}

test('checks one answer at a time, in turns by workspace', async () => {
  const { held, results } = startChecks(['a', 'a', 'a', 'b'])
  const sentences: string[] = []
  for (let call = 1; call <= 8; call++) {
    await expect.poll(() => held.length).toBe(call)
    // The sentence of an answer is embedded first, and then that of the passage.
    if (call % 2 === 1) sentences.push(held.at(-1)!.text)
    held.at(-1)!.release()
  }
  const counts = sentences.map(text => text.split(' again').length - 1)
  expect(counts).toEqual([0, 1, 3, 2])
  for (const result of results) expect(await result).toHaveLength(1)
})

test('does not check an answer that waits for others for two seconds', async () => {
  const { clock, held, results } = startChecks(['a', 'b'])
  await expect.poll(() => held.length).toBe(1)
  clock.advance(2_000)
  expect(await Promise.all(results)).toEqual([undefined, undefined])
  expect(held).toHaveLength(1)
})

/** Opens a chat whose sentence model does not respond during a check. */
async function openWithSilentModel(clock?: TestClock) {
  const model = createModel()
  let isSilent = false
  const embed = vi.fn((texts: readonly string[], options: Parameters<typeof model.embed>[1]) =>
    isSilent && texts.includes(invented)
      ? new Promise<never>((_, reject) =>
          options.signal!.addEventListener('abort', () => reject(options.signal!.reason)),
        )
      : model.embed(texts, options),
  )
  const chat = await openChat({ sentenceModel: { ...model, embed }, ...(clock && { clock }) })
  isSilent = true
  const isChecking = () => embed.mock.calls.some(([texts]) => texts.includes(invented))
  return { chat, isChecking }
}

test('ends the turn after two seconds without a result of the check', async () => {
  const clock = new TestClock()
  const { chat, isChecking } = await openWithSilentModel(clock)
  const marked = ask(chat, `${faithful} ${invented}`)
  await expect.poll(isChecking).toBe(true)
  clock.advance(2_000)
  expect(await marked).toBeUndefined()
})

test('stores the whole answer at once if the reader disconnects during the check', async () => {
  const { chat, isChecking } = await openWithSilentModel(new TestClock())
  const text = `${faithful} ${invented}`
  chat.model.script(searching, { text })
  const reader = new AbortController()
  const response = await chat.runtime.fetch(
    new Request(`http://localhost${chat.path}/messages/stream`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ content: 'when are refunds paid?' }),
      signal: reader.signal,
    }),
  )
  const body = response.text().catch(() => {})
  await expect.poll(isChecking).toBe(true)
  reader.abort()
  await body
  await expect
    .poll(async () => (await chat.send(`GET ${chat.path}/messages`)).body.items)
    .toMatchObject([{ role: 'user' }, { content: text, metadata: { finish_reason: 'stop' } }])
})
