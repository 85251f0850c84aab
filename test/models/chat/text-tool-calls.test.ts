import { expect, test } from 'vitest'
import { parseTextToolCalls } from '../../../src/models/chat/text-tool-calls.ts'

const schemaOf = (name: string) => (name === 'add' ? { properties: { note: { type: 'string' } } } : undefined)

test('reads the parameters of a call in tags', () => {
  const block =
    '<tool_call>\n<function=add>\n<parameter=a>\n1\n</parameter>\n<parameter=note>2</parameter>\n</function>\n</tool_call>'
  expect(parseTextToolCalls(block, schemaOf)).toEqual([{ name: 'add', arguments: '{"a":1,"note":"2"}' }])
})

test('reads a Mistral call with white space around its marker', () => {
  expect(parseTextToolCalls('[TOOL_CALLS]add [ARGS] {"a":1}', schemaOf)).toEqual([
    { name: 'add', arguments: '{"a":1}' },
  ])
})

test.each([
  ['parameters without an end', `<tool_call><function=add>${'<parameter=a>'.repeat(70_000)}</tool_call>`],
  ['white space', `[TOOL_CALLS]add${' '.repeat(900_000)}x`],
])('reads many %s in linear time', (_what, block) => {
  const startedAt = performance.now()
  parseTextToolCalls(block, schemaOf)
  expect(performance.now() - startedAt).toBeLessThan(5_000)
})
