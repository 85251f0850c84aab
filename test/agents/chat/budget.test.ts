import fc from 'fast-check'
import { expect, test } from 'vitest'
import { type Draft, fitted, tokensIn } from '../../../src/agents/chat/budget.ts'
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
const draft = (parts: Partial<Draft>): Draft => ({
  system: 'system',
  history: [],
  question: 'question',
  exchanges: [],
  tools: [],
  ...parts,
})

test('the oldest messages go first, a call together with its result', () => {
  const history: ChatMessage[] = [
    { role: 'user', content: 'u'.repeat(300) },
    call('1'),
    result('1', 300),
    { role: 'assistant', content: 'a'.repeat(300) },
  ]
  const { messages, dropped } = fitted(draft({ history }), 180)
  expect(dropped).toBe(3)
  expect(messages.map(({ role }) => role)).toEqual(['system', 'assistant', 'user'])
})

test('then results of the turn are cut, the oldest first, and keep the end of their mark', () => {
  const exchanges = [call('1'), result('1', 9_000), call('2'), result('2', 600)]
  const { messages, cut } = fitted(draft({ exchanges }), 700)
  expect(cut).toBe(1)
  const [first, second] = messages.filter(({ role }) => role === 'tool').map(({ content }) => content!)
  expect(first).toMatch(/^<data x>\nr+\n\[cut: the rest does not fit]\n<\/data x>$/)
  expect(second).toBe(result('2', 600).content)
})

const message = fc.oneof(
  fc.string({ maxLength: 400 }).map((content): ChatMessage => ({ role: 'user', content })),
  fc.string({ maxLength: 400 }).map((content): ChatMessage => ({ role: 'assistant', content })),
)

test('the question and what the system is told are never cut, and what is kept is the newest', () => {
  fc.assert(
    fc.property(
      fc.array(message),
      fc.string({ maxLength: 3_000 }),
      fc.nat(2_000),
      (history, question, budget) => {
        const { messages, dropped } = fitted(draft({ history, question }), budget)
        expect(messages[0]).toEqual({ role: 'system', content: 'system' })
        expect(messages.at(-1)).toEqual({ role: 'user', content: question })
        expect(messages.slice(1, -1)).toEqual(history.slice(dropped))
        if (dropped < history.length)
          expect(messages.reduce((sum, { content }) => sum + tokensIn(content ?? ''), 0)).toBeLessThanOrEqual(
            budget,
          )
      },
    ),
  )
})
