import fc from 'fast-check'
import { expect, test } from 'vitest'
import { splitIntoTurns } from '../../../src/agents/chat/past-turns.ts'
import { DataTags } from '../../../src/agents/chat/system-prompt.ts'
import { buildChatRequest } from '../../../src/models/chat/chat-request.ts'
import { initialTraits } from '../../../src/models/chat/model-traits.ts'
import type { MessageRow } from '../../../src/storage/tables.ts'
import { type SentMessage, templateProblem } from '../../fakes/chat-template.ts'
import { messageRow } from '../../harness/agents.ts'

const place = { workspaceId: 'w', conversationId: 'c' }
const id = fc.constantFrom('call_0', 'call_1', 'call_2')
const fields: fc.Arbitrary<Partial<MessageRow>> = fc.oneof(
  fc.record({ role: fc.constant('user' as const), content: fc.string({ minLength: 1, maxLength: 20 }) }),
  fc.record({ role: fc.constant('agent' as const), content: fc.constantFrom('', 'An answer.', null) }),
  fc.constant({ role: 'agent' as const, content: 'Busy.', metadata: { finish_reason: 'error' } }),
  fc.uniqueArray(id, { minLength: 1 }).map(ids => ({
    role: 'agent' as const,
    content: '',
    toolCallPayload: { toolCalls: ids.map(called => ({ id: called, name: 'search_kb', arguments: '{}' })) },
  })),
  id.map(toolCallId => ({
    role: 'tool' as const,
    content: null,
    toolId: 'search_kb',
    toolResponse: { toolCallId, content: 'A result.' },
  })),
)

function sentFor(rows: readonly MessageRow[]): SentMessage[] {
  const messages = splitIntoTurns(rows, new DataTags()).flatMap(turn => turn.messages)
  const withQuestion = [...messages, { role: 'user' as const, content: 'And now?' }]
  const settings = { maxTokens: 10, signal: new AbortController().signal }
  const { body } = buildChatRequest(withQuestion, settings, initialTraits('localhost'))
  return (body as { messages: SentMessage[] }).messages
}

test('any stored rows produce alternating roles, and no question is lost', () => {
  fc.assert(
    fc.property(fc.array(fields, { maxLength: 30 }), all => {
      const rows = all.map((row, at) => messageRow(place, at, row))
      const sent = sentFor(rows)
      expect(templateProblem(sent)).toBeUndefined()
      const countOf = (role: string, some: readonly { role: string }[]) =>
        some.filter(message => message.role === role).length
      expect(countOf('user', sent)).toBe(countOf('user', rows) + 1)
    }),
  )
})

test('calls are followed by their results in the order of the calls, and consecutive answers are merged', () => {
  const toolCalls = ['a', 'b'].map(called => ({ id: called, name: 'search_kb', arguments: '{}' }))
  const response = (toolCallId: string) => ({ toolResponse: { toolCallId, content: toolCallId } })
  const rows = [
    messageRow(place, 0),
    messageRow(place, 1, { role: 'agent', content: '', toolCallPayload: { toolCalls } }),
    messageRow(place, 2, { role: 'tool', content: null, ...response('b') }),
    messageRow(place, 3, { role: 'tool', content: null, ...response('a') }),
    messageRow(place, 4, { role: 'agent', content: 'One.' }),
    messageRow(place, 5, { role: 'agent', content: 'Two.' }),
  ]
  const sent = sentFor(rows)
  expect(sent.map(({ role, tool_call_id: called }) => called ?? role)).toEqual([
    'user',
    'assistant',
    'a',
    'b',
    'assistant',
    'user',
  ])
  expect(sent[4]!.content).toBe('One.\n\nTwo.')
})
