import { expect, test } from 'vitest'
import { firstChoice, messagePartsOf } from '../../../src/models/chat/message-parts.ts'

const parts = (more: Partial<ReturnType<typeof messagePartsOf>>) => ({
  text: '',
  reasoning: '',
  details: [],
  calls: [],
  ...more,
})

test.each([
  ['a delta', { delta: { content: 'a' } }, parts({ text: 'a' })],
  ['a whole message', { message: { content: 'a' } }, parts({ text: 'a' })],
  [
    'a delta before the message',
    { delta: { content: 'a' }, message: { content: 'b' } },
    parts({ text: 'a' }),
  ],
  ['an empty delta', { delta: {}, message: { content: 'b' } }, parts({})],
  ['a delta that is null', { delta: null, message: { content: 'b' } }, parts({ text: 'b' })],
  ['a completion', { text: 'a' }, parts({ text: 'a' })],
  ['a message that is no object', { delta: 'x', text: 'a' }, parts({ text: 'a' })],
  ['a refusal', { delta: { content: '', refusal: 'no' } }, parts({ text: 'no' })],
  ['a refusal next to text', { delta: { content: 'a', refusal: 'no' } }, parts({ text: 'a' })],
  ['DeepSeek', { delta: { reasoning_content: 'r' } }, parts({ reasoning: 'r' })],
  [
    'OpenRouter',
    { delta: { reasoning: 'r', reasoning_details: [1] } },
    parts({ reasoning: 'r', details: [1] }),
  ],
  ['Ollama', { delta: { thinking: 'r' } }, parts({ reasoning: 'r' })],
  [
    'reasoning details only',
    { delta: { reasoning_details: [{ text: 'a' }, { summary: 'b' }, { data: 'c' }] } },
    parts({ reasoning: 'ab', details: [{ text: 'a' }, { summary: 'b' }, { data: 'c' }] }),
  ],
  [
    'Mistral',
    {
      message: {
        content: [
          { type: 'thinking', thinking: [{ text: 'r' }] },
          { type: 'text', text: 'a' },
          { text: 'b' },
        ],
      },
    },
    parts({ text: 'ab', reasoning: 'r' }),
  ],
  [
    'a reasoning field before reasoning content',
    { message: { reasoning: 'x', content: [{ type: 'reasoning', text: 'r' }] } },
    parts({ reasoning: 'x' }),
  ],
  [
    'text at the maximum depth',
    { delta: { content: { text: { text: { text: { text: 'a' } } } } } },
    parts({ text: 'a' }),
  ],
  ['deeper text', { delta: { content: { text: { text: { text: { text: { text: 'a' } } } } } } }, parts({})],
  ['content of another type', { delta: { content: 5 } }, parts({})],
  ['calls of a delta', { delta: { tool_calls: [{ id: 'a' }, null, 'x'] } }, parts({ calls: [{ id: 'a' }] })],
  [
    'calls of a whole message, with their positions',
    { message: { tool_calls: [{ id: 'a' }, { id: 'b', index: 7 }] } },
    parts({
      calls: [
        { id: 'a', index: 0 },
        { id: 'b', index: 1 },
      ],
    }),
  ],
  [
    'a function call',
    { delta: { function_call: { name: 'f' } } },
    parts({ calls: [{ index: 0, function: { name: 'f' } }] }),
  ],
  [
    'a function call next to tool calls',
    { delta: { tool_calls: [{ id: 'a' }], function_call: { name: 'f' } } },
    parts({ calls: [{ id: 'a' }] }),
  ],
  ['a function call that is no object', { delta: { function_call: 'f' } }, parts({})],
  ['nothing', undefined, parts({})],
])('reads %s', (_name, choice, expected) => {
  expect(messagePartsOf(choice)).toEqual(expected)
})

test('returns the first choice of an event, if there is one', () => {
  expect(firstChoice({ choices: [{ a: 1 }, { a: 2 }] })).toEqual({ a: 1 })
  for (const event of [{ choices: [] }, { choices: { 0: 1 } }, null])
    expect(firstChoice(event)).toBeUndefined()
})
