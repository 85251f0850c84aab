import fc from 'fast-check'
import { expect, test } from 'vitest'
import { normalizeToolArguments } from '../../../src/models/chat/tool-arguments.ts'

const schema = {
  type: 'object',
  properties: {
    query: { type: 'string' },
    note: { type: 'string' },
    count: { type: 'integer' },
    mode: { enum: ['fast', 'exact'] },
    since: { type: ['string', 'null'], format: 'date' },
    place: { anyOf: [{ type: 'string', minLength: 1 }, { type: 'null' }] },
    other: { $ref: '#/$defs/other' },
  },
  required: ['query'],
}

test.each([
  ['nothing', '', '{}'],
  ['null', ' null ', '{}'],
  ['an empty text', '""', '{}'],
  ['an object', '{"query": "x"}', '{"query": "x"}'],
  ['JSON in JSON', '"{\\"query\\":\\"x\\"}"', '{"query":"x"}'],
  ['no JSON', '{"query', '{"query'],
  ['a list', '[1]', '[1]'],
  ['null for optional arguments', '{"query":"x","count":null,"mode":null}', '{"query":"x"}'],
  ['an empty text for a choice and a number', '{"query":"x","count":"","mode":""}', '{"query":"x"}'],
  ['null for a required argument', '{"query":null}', '{"query":null}'],
  ['an empty text where one is taken', '{"query":"","note":""}', '{"query":"","note":""}'],
  [
    'null where it is taken',
    '{"query":"x","since":null,"place":null,"other":null}',
    '{"query":"x","since":null,"place":null,"other":null}',
  ],
  ['an argument that the tool does not have', '{"query":"x","made_up":null}', '{"query":"x","made_up":null}'],
])('reads %s', (_what, written, expected) => {
  expect(normalizeToolArguments(written, schema)).toBe(expected)
})

test('leaves the arguments of an object without null and empty values as they are', () => {
  const value = fc.oneof(fc.integer(), fc.boolean(), fc.string({ minLength: 1 }))
  fc.assert(
    fc.property(fc.dictionary(fc.string(), value), given => {
      const written = JSON.stringify(given)
      expect(normalizeToolArguments(written, schema)).toBe(written)
    }),
  )
})
