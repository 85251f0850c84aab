import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseWhere } from '../../src/cli/passages/parse-where.ts'
import { createMatcher, parseFilter } from '../../src/storage/filter.ts'

test.each([
  ['lang=en', { lang: 'en' }],
  ['lang =', { lang: '' }],
  ['year=1960', { year: { $in: [1960, '1960'] } }],
  ['year="1960"', { year: '1960' }],
  ['draft != true', { draft: { $nin: [true, 'true'] } }],
  ['lang != en', { lang: { $ne: 'en' } }],
  ['year >= 2024', { year: { $gte: 2024 } }],
  ["day < '2024-05-01'", { day: { $lt: '2024-05-01' } }],
  ['tag in (a, "b c", 3)', { tag: { $in: ['a', 'b c', 3, '3'] } }],
  ['tag not in (a)', { tag: { $nin: ['a'] } }],
  ['title = Laws of motion', { title: 'Laws of motion' }],
  ['url=https://example.com/?a=b,c', { url: 'https://example.com/?a=b,c' }],
  ['"my key" = x', { 'my key': 'x' }],
  ['"in" = x', { in: 'x' }],
  ['a = "say \\"and\\" twice"', { a: 'say "and" twice' }],
  [
    'a=1 or b=x and not c=y',
    { $or: [{ a: { $in: [1, '1'] } }, { $and: [{ b: 'x' }, { $not: { c: 'y' } }] }] },
  ],
  ['(a=x OR b=y) AND c=z', { $and: [{ $or: [{ a: 'x' }, { b: 'y' }] }, { c: 'z' }] }],
  ['not not a=x', { a: 'x' }],
  ['android=in-app', { android: 'in-app' }],
])('parses %s', (text, condition) => {
  expect(parseWhere(text)).toEqual(condition)
})

test.each([
  ['', 'a key is missing (column 1)'],
  ['lang', 'an operator is missing after "lang" (column 5)'],
  ['lang > ', 'a value is missing after ">"'],
  ['lang = en and', 'a key is missing (column 14)'],
  ['title = Laws and rules', 'an operator is missing after "rules" (column 23)'],
  ['(a = b', 'a closing parenthesis is missing (column 7)'],
  ['a = b)', '")" is unexpected (column 6)'],
  ['tag in a', 'a list in parentheses is missing after "in"'],
  ['tag in (a', 'a closing parenthesis is missing'],
  ['$and = x', 'a key cannot start with "$"'],
  [`${'('.repeat(5_000)}a=b`, 'more than 16 parentheses are nested'],
])('rejects %s', (text, fact) => {
  expect(() => parseWhere(text)).toThrow(fact)
})

describe('the condition', () => {
  const value = fc.oneof(fc.integer({ min: -3, max: 3 }), fc.constantFrom('a', 'b and c', "d'e", '(', 'true'))
  const quote = (text: string | number) => (typeof text === 'number' ? String(text) : JSON.stringify(text))
  const comparison = fc.oneof(
    fc
      .tuple(fc.constantFrom('x', 'y'), fc.constantFrom('<', '<=', '>', '>='), value)
      .map(([key, op, bound]) => ({
        text: `${key} ${op} ${quote(bound)}`,
        filter: { [key]: { [{ '<': '$lt', '<=': '$lte', '>': '$gt', '>=': '$gte' }[op]!]: bound } } as object,
      })),
    fc
      .tuple(fc.constantFrom('x', 'y'), fc.array(value, { minLength: 1, maxLength: 3 }))
      .map(([key, list]) => ({
        text: `${key} in (${list.map(quote).join(', ')})`,
        filter: {
          [key]: { $in: list.flatMap(one => (typeof one === 'number' ? [one, String(one)] : [one])) },
        },
      })),
  )
  const expression = fc.letrec<{ node: { text: string; filter: object } }>(tie => ({
    node: fc.oneof(
      { depthSize: 'small', withCrossShrink: true },
      comparison,
      tie('node').map(({ text, filter }) => ({ text: `not (${text})`, filter: { $not: filter } })),
      fc.tuple(tie('node'), fc.constantFrom('and', 'or'), tie('node')).map(([left, word, right]) => ({
        text: `(${left.text}) ${word} (${right.text})`,
        filter: { [`$${word}`]: [left.filter, right.filter] },
      })),
    ),
  })).node

  test('matches what its text says', () => {
    fc.assert(
      fc.property(
        expression,
        fc.dictionary(fc.constantFrom('x', 'y'), value),
        ({ text, filter }, payload) => {
          fc.pre((text.match(/\(/g) ?? []).length <= 16)
          const [parsed, expected] = [parseFilter(parseWhere(text)), parseFilter(filter)]
          expect(createMatcher(parsed)(payload)).toBe(createMatcher(expected)(payload))
        },
      ),
    )
  })
})
