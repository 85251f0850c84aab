import { expect, test } from 'vitest'
import { estimateTokens } from '../../../src/agents/estimate-tokens.ts'
import type { Message } from '../../../src/contract/conversations.ts'
import { documents } from '../../../src/contract/documents.ts'
import { kb } from '../../../src/contract/knowledge.ts'
import type { RowStore } from '../../../src/storage/rows.ts'
import type { ChatRequest, ChatStep } from '../../fakes/chat-server.ts'
import { type SentMessage, templateProblem } from '../../fakes/chat-template.ts'
import { serveOverHttp } from '../../harness/http-runtime.ts'
import type { TestRuntime } from '../../harness/runtime.ts'
import { openTestChat } from '../../harness/test-chat.ts'

const windowTokens = 8_192

/** Creates a knowledge base with chunks of realistic length. */
async function createAlmanac({ call }: TestRuntime, workspaceId: string) {
  const { knowledgeBaseId } = await call(kb.create, { params: { workspaceId }, body: { name: 'almanac' } })
  const line = (at: number) => `Harbor ${at} opens at ${at % 24} and its pilot is called Ann ${at}. `
  const text = Array.from({ length: 200 }, (_, at) => line(at)).join('')
  await call(documents.ingest, { params: { workspaceId, knowledgeBaseId }, body: { text } })
  return { knowledgeBaseIds: [knowledgeBaseId] }
}

const sentIn = ({ body }: ChatRequest) => body.messages as SentMessage[]
const isSummary = (request: ChatRequest) => sentIn(request)[0]!.content!.startsWith('You summarize')
const tokensOf = ({ body: { messages, tools } }: ChatRequest) =>
  estimateTokens(JSON.stringify({ messages, tools }))

/** Returns a model that searches in every other turn and gives long answers. */
function talkativeModel(summary: () => ChatStep) {
  return (request: ChatRequest): ChatStep => {
    if (isSummary(request)) return summary()
    const last = sentIn(request).at(-1)!
    const number = Number(/question (\d+)/.exec(last.content!)?.[1] ?? 0)
    if (last.role === 'user' && number % 2 === 1)
      return { toolCalls: [{ name: 'search_kb', arguments: { query: `harbor ${number}`, limit: 8 } }] }
    return { text: `Answer ${number}. ${'The harbor is open today. '.repeat(30)}` }
  }
}

test('each of 200 turns costs at most 1.5 times the window, and summaries cover the older messages', async () => {
  let rowsRead = 0
  const chat = await openTestChat({
    prepare: createAlmanac,
    // With an Ollama model, the next question would cancel the summary.
    service: { provider: 'openai', contextWindowTokens: windowTokens },
    rows: (own: RowStore): RowStore => ({
      get: (...args) => own.get(...args),
      count: (...args) => own.count(...args),
      measure: (...args) => own.measure(...args),
      atomic: (...args) => own.atomic(...args),
      feed: own.feed,
      async list(table, query) {
        const found = await own.list(table, query)
        if (table.name === 'messages') rowsRead += found.length
        return found
      },
    }),
  })
  const { url } = await serveOverHttp(chat)
  let summaries = 0
  chat.model.respond(talkativeModel(() => ({ text: `Summary ${++summaries}. The user asks for harbors.` })))
  const costs: number[] = []
  for (let turn = 0; turn < 200; turn++) {
    const before = chat.model.received.length
    rowsRead = 0
    const content = `This is question ${turn}: when does harbor ${turn} open, and who is the pilot there?`
    const answer = await fetch(`${url}${chat.path}/messages`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ content }),
    })
    expect(answer.status).toBe(201)
    const requests = chat.model.received.slice(before)
    for (const request of requests) expect(templateProblem(sentIn(request))).toBeUndefined()
    const own = requests.filter(request => !isSummary(request))
    expect(own).toHaveLength(turn % 2 === 1 ? 2 : 1)
    expect(sentIn(own[0]!).at(-1)).toEqual({ role: 'user', content })
    expect(
      sentIn(own.at(-1)!)
        .filter(({ role }) => role === 'user')
        .at(-1)!.content,
    ).toBe(content)
    costs.push(requests.reduce((sum, request) => sum + tokensOf(request), 0))
    expect(rowsRead).toBeLessThanOrEqual(400)
  }
  expect(Math.max(...costs)).toBeLessThanOrEqual(1.5 * windowTokens)

  // Each summary continues the previous one, and is sent as data until the next one exists.
  await expect.poll(() => summaries).toBeGreaterThan(5)
  const second = chat.model.received.filter(isSummary)[1]!
  expect(sentIn(second)[1]!.content).toContain('Summary 1. The user asks for harbors.')
  const [system] = sentIn(chat.model.received.filter(request => !isSummary(request)).at(-1)!)
  expect(system!.content).toMatch(
    /<data \w+ from="summary">\nSummary \d+\. The user asks for harbors\.\n<\/data/,
  )
  const { body } = await chat.send(`GET ${chat.path}/messages?limit=200`)
  const [first] = (body.items as Message[]).filter(({ role }) => role === 'system')
  expect(first).toMatchObject({
    content: 'Summary 1. The user asks for harbors.',
    metadata: { summary_by: 'model', prompt_tokens: '8', model: 'a:3b' },
  })
})

test('the question is sent whole and last, even if nothing else fits', async () => {
  const { model, send, path } = await openTestChat({ service: { contextWindowTokens: 2_048 } })
  await send(`POST ${path}/messages`, { content: 'first' })
  const content = 'Why? '.repeat(6_000)
  await send(`POST ${path}/messages`, { content })
  const sent = sentIn(model.received.at(-1)!)
  expect(sent.map(({ role }) => role)).toEqual(['system', 'user'])
  expect(sent.at(-1)!.content).toBe(content)
})

test('if the model writes no summary, answers continue, and earlier questions are listed', async () => {
  const { model, send, path } = await openTestChat({ service: { contextWindowTokens: 2_048 } })
  model.respond(talkativeModel(() => ({ status: 400, body: {} })))
  const listed = async () => {
    const { body } = await send(`GET ${path}/messages?limit=200`)
    return (body.items as Message[]).filter(({ role }) => role === 'system')
  }
  for (let turn = 0; turn < 6; turn++) {
    const { status } = await send(`POST ${path}/messages`, { content: `question ${2 * turn}` })
    expect(status).toBe(201)
  }
  await expect.poll(listed).not.toEqual([])
  const [summary] = await listed()
  expect(summary!.content).toMatch(/^The user asked earlier:\n- question 0\n/)
  expect(summary!.metadata.summary_by).toBe('rule')
  await send(`POST ${path}/messages`, { content: 'question 100' })
  const request = model.received.findLast(received => !isSummary(received))!
  expect(sentIn(request)[0]!.content).toContain('- question 0\n')
})
