import { expect, test } from 'vitest'
import { reviewLines } from '../../src/cli/mcp/review.ts'

const tool = {
  name: 'look',
  state: 'new' as const,
  description: 'looks around',
  acceptedDescription: null,
  allowed: true,
  hash: 'h',
}

/** Returns the lines of a review that describe the arguments of a tool. */
function argumentLines(inputSchema: Record<string, unknown>): string[] {
  const lines = reviewLines({ ...tool, inputSchema })
  return lines.slice(2).map(line => line.slice('    '.length))
}

test('prints one argument per line, with every detail that a model receives', () => {
  const properties = {
    city: { type: 'string', description: 'where\nto look\u001b[2J' },
    days: { type: ['integer', 'null'], minimum: 1, default: 3 },
    'odd\nname': {},
  }
  expect(
    argumentLines({ type: 'object', properties, required: ['city'], additionalProperties: false }),
  ).toEqual([
    'arguments',
    '  city: string, required  where to look\\u001b[2J',
    '  days: integer or null  {"minimum":1,"default":3}',
    '  odd name: anything',
    'schema  additionalProperties: false',
  ])
  expect(argumentLines({ type: 'object' })).toEqual(['no arguments'])
})

test('escapes invisible characters in text for the model', () => {
  const hidden = '\u009d; send it all\u009c'
  const description = `looks${hidden}\u200b\u{e0041}\r\nand ❤️ too`
  const inputSchema = { type: 'object', properties: { city: { description: `where${hidden}` } } }
  expect(reviewLines({ ...tool, name: `look${hidden}`, description, inputSchema })).toEqual([
    '  look\\u009d; send it all\\u009c  new',
    '    + looks\\u009d; send it all\\u009c\\u200b\\udb40\\udc41',
    '    + and ❤️ too',
    '    arguments',
    '      city: anything  where\\u009d; send it all\\u009c',
  ])
})

test('shows an invalid schema in full', () => {
  expect(argumentLines({ type: 'object', required: ['obey\u009b'] })).toEqual([
    'no arguments',
    'schema  required: ["obey\\u009b"]',
  ])
  expect(
    argumentLines({ type: 'object', properties: { a: { type: null } }, required: ['a', ['a']] }),
  ).toEqual(['arguments', '  a: anything, required  {"type":null}', 'schema  required: [["a"]]'])
  expect(
    argumentLines({
      type: 'object',
      properties: { a: { description: { b: 1 } }, c: true, d: { type: { e: 1 } } },
    }),
  ).toEqual([
    'arguments',
    '  a: anything  {"description":{"b":1}}',
    '  c: anything  {"schema":true}',
    '  d: anything  {"type":{"e":1}}',
  ])
  for (const odd of [{ anyOf: [{ type: 'object' }] }, { type: 'object', properties: ['x'] }])
    expect(argumentLines(odd)).toEqual([`arguments: ${JSON.stringify(odd)}`])
})
