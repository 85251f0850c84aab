import fc from 'fast-check'
import { expect, test } from 'vitest'
import { parseCompletionRequest } from '../../../src/agents/openai/completion-request.ts'
import type { CompletionMessage } from '../../../src/contract/openai.ts'

const text = fc.string({ minLength: 1, maxLength: 5 }).filter(value => value.trim() !== '')
const content = fc.oneof(
  text,
  fc.array(
    text.map(value => ({ type: 'text', text: value })),
    { minLength: 1, maxLength: 3 },
  ),
)
const role = fc.constantFrom('system', 'developer', 'user', 'assistant')
const message = fc.record({ role, content: fc.option(content) }) as fc.Arbitrary<CompletionMessage>
const question = fc.record({ role: fc.constant('user' as const), content })

function textOf({ content: said }: CompletionMessage): string {
  return typeof said === 'string' ? said : (said ?? []).map(part => part.text).join('')
}

test('keeps every text in order, and alternates questions and answers', () => {
  fc.assert(
    fc.property(fc.array(message), question, (earlier, last) => {
      const messages: CompletionMessage[] = [...earlier, last]
      const read = parseCompletionRequest({ model: 'any', messages })
      const parsed = [...read.earlierMessages, { role: 'user', content: read.question }]
      for (const [at, { role: own }] of parsed.entries()) expect(own).not.toBe(parsed[at - 1]?.role)
      const written = (isOf: (one: CompletionMessage) => boolean) => {
        const texts = messages.filter(isOf).map(textOf)
        return texts.filter(one => one !== '').join('\n\n')
      }
      const isSaid = (one: CompletionMessage) => one.role === 'user' || one.role === 'assistant'
      expect(parsed.map(one => one.content).join('\n\n')).toBe(written(isSaid))
      expect(read.instructions ?? '').toBe(written(one => !isSaid(one)))
    }),
  )
})

test('prefers the newer name of the token limit to the older one', () => {
  const messages: CompletionMessage[] = [{ role: 'user', content: 'hello' }]
  const limitOf = (more: object) => parseCompletionRequest({ model: 'any', messages, ...more }).maxTokens
  expect(limitOf({ max_tokens: 5, max_completion_tokens: 3 })).toBe(3)
  expect(limitOf({ max_tokens: 5, max_completion_tokens: null })).toBe(5)
  expect(limitOf({})).toBeUndefined()
})
