import fc from 'fast-check'
import { expect, test } from 'vitest'
import { countTokens, fitToBudget, type RequestDraft } from '../../../src/agents/chat/request-budget.ts'
import type { ChatMessage } from '../../../src/models/chat/completion.ts'

const call = (id: string): ChatMessage => ({
  role: 'assistant',
  content: '',
  toolCalls: [{ id, name: 'search_kb', arguments: '{}' }],
})
const result = (toolCallId: string, chars: number): ChatMessage => ({
  role: 'tool',
  toolCallId,
  content: `<data x>\n${'r'.repeat(chars)}\n</data x>`,
})
const draft = (parts: Partial<RequestDraft>): RequestDraft => ({
  system: 'system',
  history: [],
  question: 'question',
  exchanges: [],
  tools: [],
  ...parts,
})

const turn = (id: string, resultChars: number, chars = 100): ChatMessage[] => [
  { role: 'user', content: `${id}${'u'.repeat(chars)}` },
  call(id),
  result(id, resultChars),
  { role: 'assistant', content: 'a'.repeat(chars) },
]

test('shortens tool results of older turns first, oldest first, then leaves out whole turns', () => {
  const history = [...turn('1', 3_000), ...turn('2', 3_000), ...turn('3', 600)]
  const lengthsIn = (budget: number) =>
    fitToBudget(draft({ history }), budget).messages.flatMap(message =>
      message.role === 'tool' ? [[message.toolCallId, message.content.length]] : [],
    )
  const between = expect.toSatisfy((length: number) => length > 400 && length < 3_000)
  expect(lengthsIn(9_000)).toEqual([
    ['1', 3_019],
    ['2', 3_019],
    ['3', 619],
  ])
  expect(lengthsIn(4_000)).toEqual([
    ['1', between],
    ['2', 3_019],
    ['3', 619],
  ])
  expect(lengthsIn(2_500)).toEqual([
    ['1', 429],
    ['2', between],
    ['3', 619],
  ])
  expect(lengthsIn(1_200).map(([id]) => id)).toEqual(['2', '3'])
  expect(lengthsIn(10)).toEqual([])
})

test('then cuts tool results of the current turn, oldest first, and keeps their end tag', () => {
  const exchanges = [call('1'), result('1', 9_000), call('2'), result('2', 600)]
  const { messages, cut } = fitToBudget(draft({ exchanges }), 700)
  expect(cut).toBe(1)
  const [first, second] = messages.filter(({ role }) => role === 'tool').map(({ content }) => content!)
  expect(first).toMatch(/^<data x>\nr+\n\[cut: the rest does not fit]\n<\/data x>$/)
  expect(second).toBe(result('2', 600).content)
})

test.each([
  { fields: { reasoning: 'r'.repeat(3_000) }, wantsReasoning: true, isCut: true },
  { fields: { reasoning: 'r'.repeat(3_000) }, wantsReasoning: false, isCut: false },
  { fields: { reasoningDetails: ['r'.repeat(3_000)] }, wantsReasoning: false, isCut: true },
  { fields: { callExtras: { 1: 'r'.repeat(3_000) } }, wantsReasoning: false, isCut: true },
])('counts fields that are sent back to the provider: %j', ({ fields, wantsReasoning, isCut }) => {
  const spoken = { ...call('1'), providerFields: fields } as ChatMessage
  const { messages, cut } = fitToBudget(
    draft({ exchanges: [spoken, result('1', 3_000)], wantsReasoning }),
    1_600,
  )
  expect(cut).toBe(isCut ? 1 : 0)
  if (isCut) expect(countTokens(messages) + 1_000).toBeLessThanOrEqual(1_600)
})

const pastTurn = fc
  .record({
    question: fc.string({ unit: 'grapheme', maxLength: 400 }),
    results: fc.array(fc.nat(3_000), { maxLength: 2 }),
  })
  .map(({ question, results }): ChatMessage[] => [
    { role: 'user', content: question },
    ...results.flatMap((chars, at) => [call(String(at)), result(String(at), chars)]),
    { role: 'assistant', content: 'An answer.' },
  ])

test('sends the newest whole turns that fit, and never cuts the question or the system prompt', () => {
  fc.assert(
    fc.property(
      fc.array(pastTurn),
      fc.string({ maxLength: 3_000 }),
      fc.nat(4_000),
      (turns, question, budget) => {
        const { messages, dropped } = fitToBudget(draft({ history: turns.flat(), question }), budget)
        expect(messages[0]).toEqual({ role: 'system', content: 'system' })
        expect(messages.at(-1)).toEqual({ role: 'user', content: question })
        const sent = messages.slice(1, -1)
        const names = (some: readonly ChatMessage[]) =>
          some.map(message => (message.role === 'tool' ? message.toolCallId : message.content))
        expect(names(sent)).toEqual(names(turns.flat()).slice(dropped))
        expect(sent[0]?.role ?? 'user').toBe('user')
        if (sent.length > 0) expect(countTokens(messages)).toBeLessThanOrEqual(budget)
      },
    ),
  )
})

test('reserves room for the passages of a search before earlier turns', () => {
  const history = Array.from({ length: 100 }, (_, at) => turn(String(at), 0)).flat()
  const tools = [{ name: 'search_kb', description: '', parameters: {} }]
  const sent = (more: Partial<RequestDraft>) =>
    countTokens(fitToBudget(draft({ history, ...more }), 3_000).messages.slice(1, -1))
  expect(sent({ tools })).toBeLessThanOrEqual(1_000)
  expect(sent({})).toBeGreaterThan(1_300)
  expect(sent({})).toBeLessThanOrEqual(1_500)
})
