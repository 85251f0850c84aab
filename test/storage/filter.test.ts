import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { compareCodePoints } from '../../src/base/compare-code-points.ts'
import { WbError } from '../../src/contract/errors.ts'
import { limits } from '../../src/contract/limits.ts'
import { type Filter, joinFilters, matchesFilter, parseFilter } from '../../src/storage/filter.ts'
import Database from '../../src/storage/sqlite/driver.ts'
import { defineFilterFunctions, filterToSql } from '../../src/storage/sqlite/filter-sql.ts'

type Payload = Record<string, unknown>

const database = new Database(':memory:')
defineFilterFunctions(database)
const forms = { text: '?', jsonb: 'jsonb(?)' }

/** Evaluates a filter in SQLite for one payload, stored as text and as JSONB. */
function bySql(filter: Filter | undefined, payload: Payload | null, form: keyof typeof forms): unknown {
  const { sql, parameters } = filterToSql(filter, 'c.payload')
  return database
    .prepare(`WITH c(payload) AS (SELECT ${forms[form]}) SELECT ${sql} FROM c`)
    .pluck()
    .get(payload === null ? null : JSON.stringify(payload), ...parameters)
}

function refusal(input: unknown): string {
  try {
    parseFilter(input)
  } catch (error) {
    expect(error).toBeInstanceOf(WbError)
    expect(error).toMatchObject({ code: 'validation_error', status: 400 })
    return (error as WbError).message
  }
  throw new Error('was accepted')
}

const own = (key: string, value: unknown): Payload =>
  Object.defineProperty({}, key, { value, enumerable: true, configurable: true, writable: true })

const nastyKeys = [
  'a',
  'chunker.id',
  '',
  '.',
  'a"b',
  "a'b",
  'a\\b',
  'a\\u0062',
  '[0]',
  '0',
  '#-1',
  'x$',
  '$',
  '$lt',
  '__proto__',
  'constructor',
  'toString',
  'é',
  '😀',
  '\0',
  'a\0',
  'a\0b',
  '\n',
  '?',
  'key',
  'value',
  'payload',
]
const nastyTexts = [
  '',
  'a',
  'b',
  'A',
  'true',
  'null',
  '1',
  'ﬁ',
  '😀',
  '😁',
  '\u{10ffff}',
  '\uffff',
  '\ue000',
  'a\0b',
  'a\0c',
  'é',
  'undefined',
  '[]',
  '"',
  "'",
]
const nastyNumbers = [
  0,
  -0,
  1,
  -1,
  1.5,
  0.1 + 0.2,
  0.3,
  2 ** 53,
  2 ** 53 + 2,
  2 ** 62,
  2 ** 63,
  -(2 ** 63),
  1e21,
  1e-7,
  5e-324,
  Number.MAX_VALUE,
  -Number.MAX_VALUE,
]

/** Any text without lone surrogates, which `parseJson` rejects and SQLite drivers replace. */
const wellFormed = fc.string({ unit: 'binary' }).filter(text => !/\p{Surrogate}/u.test(text))

const key = fc.oneof(
  { weight: 6, arbitrary: fc.constantFrom(...nastyKeys) },
  { weight: 1, arbitrary: wellFormed },
)
const scalar = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(...nastyTexts) },
  { weight: 3, arbitrary: fc.constantFrom(...nastyNumbers) },
  { weight: 2, arbitrary: fc.constantFrom(true, false, null) },
  { weight: 1, arbitrary: wellFormed },
  { weight: 1, arbitrary: fc.double({ noNaN: true, noDefaultInfinity: true }) },
  { weight: 1, arbitrary: fc.maxSafeInteger() },
)
const stored = fc.oneof(
  { weight: 5, arbitrary: scalar },
  { weight: 3, arbitrary: fc.array(scalar, { maxLength: 5 }) },
  { weight: 1, arbitrary: fc.jsonValue({ maxDepth: 3 }) },
  { weight: 1, arbitrary: fc.tuple(key, scalar).map(([name, value]) => own(name, value)) },
  { weight: 1, arbitrary: fc.array(fc.array(scalar, { maxLength: 2 }), { maxLength: 2 }) },
)
const payload = fc.array(fc.tuple(key, stored), { maxLength: 8 }).map(entries => {
  const made: Payload = {}
  for (const [name, value] of entries)
    Object.defineProperty(made, name, { value, enumerable: true, configurable: true, writable: true })
  return made
})
const operand = fc.oneof(
  fc.tuple(fc.constantFrom('$eq', '$ne'), scalar),
  fc.tuple(fc.constantFrom('$in', '$nin', '$all'), fc.array(scalar, { maxLength: 4 })),
  fc.tuple(
    fc.constantFrom('$lt', '$lte', '$gt', '$gte'),
    scalar.filter(value => typeof value === 'string' || typeof value === 'number'),
  ),
)
const conditionKey = key.filter(name => !name.startsWith('$'))
const { input } = fc.letrec<{ input: Payload }>(tie => ({
  input: fc.oneof(
    { maxDepth: 4, depthSize: 'medium' },
    fc.tuple(conditionKey, scalar).map(([name, value]) => own(name, value)),
    fc
      .tuple(conditionKey, fc.array(operand, { minLength: 1, maxLength: 2 }))
      .map(([name, operands]) => own(name, Object.fromEntries(operands))),
    fc
      .tuple(fc.constantFrom('$and', '$or'), fc.array(tie('input'), { maxLength: 3 }))
      .map(([name, of]) => ({ [name]: of })),
    tie('input').map(of => ({ $not: of })),
    fc.tuple(tie('input'), tie('input')).map(([a, b]) => ({ ...a, ...b })),
  ),
}))

describe('SQLite and memory', () => {
  test('agree on random filters and payloads', () => {
    fc.assert(
      fc.property(input, fc.array(payload, { minLength: 1, maxLength: 3 }), (written, payloads) => {
        const filter = parseFilter(written)
        for (const one of payloads) {
          const expected = matchesFilter(filter, JSON.parse(JSON.stringify(one)) as Payload) ? 1 : 0
          expect(bySql(filter, one, 'text')).toBe(expected)
          expect(bySql(filter, one, 'jsonb')).toBe(expected)
        }
      }),
      { numRuns: 1_500 },
    )
  })

  test('agree on conditions on an existing key', () => {
    const aimed = fc
      .tuple(key, stored, fc.oneof(operand, scalar))
      .map(([name, value, how]) => ({ name, value, how: Array.isArray(how) ? { [how[0]]: how[1] } : how }))
    fc.assert(
      fc.property(aimed, ({ name, value, how }) => {
        // A filter cannot contain a key such as `$lt`, but a policy can.
        const condition = parseFilter(own('k', how))!
        const filter = JSON.parse(JSON.stringify(condition), (at, part) =>
          at === 'key' ? name : part,
        ) as Filter
        const one = own(name, value)
        const expected = matchesFilter(filter, JSON.parse(JSON.stringify(one)) as Payload) ? 1 : 0
        expect(bySql(filter, one, 'text')).toBe(expected)
        expect(bySql(filter, one, 'jsonb')).toBe(expected)
      }),
      { numRuns: 1_500 },
    )
  })

  test('order text by code point', () => {
    const compare = database.prepare('SELECT (? > ?) - (? < ?)').pluck()
    const text = fc.oneof(
      fc.constantFrom(...nastyTexts),
      fc.string({ unit: fc.constantFrom('😀', '😁', '\u{10ffff}', '\ufb01', 'a', '\ue000') }),
    )
    fc.assert(
      fc.property(text, text, (a, b) => {
        expect(Math.sign(compareCodePoints(a, b))).toBe(compare.get(a, b, a, b))
      }),
      { numRuns: 2_000 },
    )
  })

  test('distinguish a key with a NUL from its prefix', () => {
    const forged = { 'visible_to\0': ['*'], 'visible_to\0x': '*', visible_to: ['alice'] }
    for (const form of ['text', 'jsonb'] as const) {
      expect(bySql(parseFilter({ visible_to: '*' }), forged, form)).toBe(0)
      expect(bySql(parseFilter({ visible_to: { $all: ['*'] } }), forged, form)).toBe(0)
      expect(bySql(parseFilter({ visible_to: { $gte: '*' } }), forged, form)).toBe(0)
      expect(bySql(parseFilter({ visible_to: 'alice' }), forged, form)).toBe(1)
    }
  })

  test('treat a null payload as an empty one', () => {
    expect(bySql(parseFilter({ a: 1 }), null, 'text')).toBe(0)
    expect(bySql(parseFilter({ a: { $ne: 1 } }), null, 'text')).toBe(1)
    expect(bySql(parseFilter({ a: { $all: [] } }), null, 'text')).toBe(0)
    expect(bySql(undefined, null, 'text')).toBe(1)
  })
})

describe('the filter language', () => {
  const row = {
    lang: 'de',
    year: 1999,
    tags: ['a', 'b', null, 1],
    open: true,
    gone: null,
    'chunker.id': 'line:1',
    box: { lang: 'fr' },
  }
  test.each<[unknown, boolean]>([
    [undefined, true],
    [{}, true],
    [{ lang: 'de' }, true],
    [{ lang: 'en' }, false],
    [{ lang: 'de', year: 1998 }, false],
    [{ tags: 'a' }, true],
    [{ tags: null }, true],
    [{ tags: true }, false],
    [{ 'chunker.id': 'line:1' }, true],
    [{ 'box.lang': 'fr' }, false],
    [{ box: 'fr' }, false],
    [{ open: true }, true],
    [{ open: 1 }, false],
    [{ open: 'true' }, false],
    [{ gone: null }, true],
    [{ none: null }, false],
    [{ none: { $ne: null } }, true],
    [{ gone: { $ne: null } }, false],
    [{ none: { $nin: ['x'] } }, true],
    [{ none: { $lt: 'zzz' } }, false],
    [{ none: { $gte: 0 } }, false],
    [{ lang: { $eq: 'de' } }, true],
    [{ lang: { $in: ['en', 'de'] } }, true],
    [{ tags: { $in: ['x', 'b'] } }, true],
    [{ tags: { $nin: ['x', 'b'] } }, false],
    [{ lang: { $in: [] } }, false],
    [{ lang: { $nin: [] } }, true],
    [{ tags: { $all: ['a', 1] } }, true],
    [{ tags: { $all: ['a', 'c'] } }, false],
    [{ tags: { $all: [] } }, true],
    [{ lang: { $all: ['de'] } }, false],
    [{ year: { $gt: 1998, $lt: 2000 } }, true],
    [{ year: { $gt: '1998' } }, true],
    [{ year: { $lt: '2' } }, true],
    [{ lang: { $gt: 1000 } }, true],
    [{ year: { $lte: 1999.0 } }, true],
    [{ lang: { $gte: 'd', $lt: 'e' } }, true],
    [{ tags: { $gte: 'a' } }, false],
    [{ open: { $gt: 0 } }, false],
    [{ $and: [{ lang: 'de' }, { $or: [{ year: 1 }, { open: true }] }] }, true],
    [{ $and: [] }, true],
    [{ $or: [] }, false],
    [{ $not: { lang: 'de' } }, false],
    [{ $not: {} }, false],
    [{ $not: { none: 1 } }, true],
  ])('%j is %s', (written, expected) => {
    const filter = parseFilter(written)
    expect(matchesFilter(filter, row)).toBe(expected)
    expect(bySql(filter, row, 'text')).toBe(expected ? 1 : 0)
  })

  test('treats names of Object.prototype as ordinary keys', () => {
    const filter = parseFilter(JSON.parse('{"__proto__": "x"}'))
    expect(matchesFilter(filter, {})).toBe(false)
    expect(matchesFilter(filter, JSON.parse('{"__proto__": "x"}') as Payload)).toBe(true)
    expect(bySql(filter, JSON.parse('{"__proto__": "x"}') as Payload, 'text')).toBe(1)
    expect(matchesFilter(parseFilter({ constructor: { $ne: 'x' } }), {})).toBe(true)
    expect(Object.getPrototypeOf(parseFilter({ constructor: 'x' }))).toBe(Object.prototype)
  })

  test('combines filters with and', () => {
    const a = parseFilter({ a: 1 })
    const b = parseFilter({ b: 1 })
    expect(joinFilters(undefined, undefined)).toBeUndefined()
    expect(joinFilters(a, undefined)).toBe(a)
    expect(joinFilters(a, b)).toEqual({ kind: 'and', parts: [a, b] })
  })

  test('binds values instead of writing them into SQL', () => {
    const { sql, parameters } = filterToSql(parseFilter({ "k'--": "v'--" }), 'c.payload')
    expect(sql).not.toContain('--')
    expect(new Set(parameters)).toEqual(new Set(["k'--", "v'--"]))
  })
})

describe('errors contain the position', () => {
  test.each<[unknown, string]>([
    [null, 'filter: must be an object'],
    [[], 'filter: must be an object'],
    ['x', 'filter: must be an object'],
    [{ $foo: 1 }, "filter: unknown operator '$foo'"],
    [{ $eq: 1 }, "filter: unknown operator '$eq'"],
    [{ $and: [{ price: { $foo: 1 } }] }, "filter.$and.0.price: unknown operator '$foo'"],
    [{ a: { b: 1 } }, "filter.a: unknown operator 'b'"],
    [{ a: { __proto__: null, constructor: 1 } }, "filter.a: unknown operator 'constructor'"],
    [{ a: { $not: { $eq: 1 } } }, "filter.a: unknown operator '$not'"],
    [{ a: {} }, 'filter.a: has no operator'],
    [{ a: [1] }, 'filter.a: must be a string, a number, a boolean or null'],
    [{ a: Number.NaN }, 'filter.a: must be a string, a number, a boolean or null'],
    [{ a: { $eq: {} } }, 'filter.a.$eq: must be a string, a number, a boolean or null'],
    [{ a: { $in: 'x' } }, 'filter.a.$in: must be an array'],
    [{ a: { $in: ['x', []] } }, 'filter.a.$in.1: must be a string, a number, a boolean or null'],
    [{ a: { $lt: true } }, 'filter.a.$lt: must be a number or a string'],
    [{ a: { $gte: null } }, 'filter.a.$gte: must be a number or a string'],
    [{ $and: { a: 1 } }, 'filter.$and: must be an array'],
    [{ $or: [1] }, 'filter.$or.0: must be an object'],
    [{ $not: [{ a: 1 }] }, 'filter.$not: must be an object'],
    [{ $not: null }, 'filter.$not: must be an object'],
    [{ a: undefined }, 'filter.a: must be a string, a number, a boolean or null'],
  ])('%j', (written, message) => {
    expect(refusal(written)).toBe(message)
  })

  test('a long key is truncated in the message', () => {
    expect(refusal({ ['k'.repeat(10_000)]: [] }).length).toBeLessThan(200)
  })
})

describe('limits of a filter', () => {
  const nested = (clauses: number): unknown => (clauses === 1 ? { a: 1 } : { $not: nested(clauses - 1) })
  const alternating = (clauses: number): unknown =>
    clauses === 1
      ? { tags: { $all: ['x'] } }
      : { [clauses % 2 ? '$and' : '$or']: [{ b: 1 }, alternating(clauses - 1)] }

  test('apply to the nesting depth', () => {
    expect(parseFilter(nested(limits.filterDepth))).toBeDefined()
    expect(refusal(nested(limits.filterDepth + 1))).toMatch(
      /^filter(\.\$not){32}: nested deeper than 32 clauses$/,
    )
    expect(bySql(parseFilter(nested(limits.filterDepth)), { a: 1 }, 'text')).toBe(0)
    const deep = parseFilter(alternating(limits.filterDepth))
    expect(bySql(deep, { b: 1, tags: ['x'] }, 'text')).toBe(
      matchesFilter(deep, { b: 1, tags: ['x'] }) ? 1 : 0,
    )
  })

  test('count the elements of a list of values', () => {
    const listed = (nodes: number) => ({ a: { $in: Array.from({ length: nodes - 2 }, (_, at) => at) } })
    const most = parseFilter(listed(limits.filterNodes))
    expect(bySql(most, { a: limits.filterNodes - 3 }, 'text')).toBe(1)
    expect(refusal(listed(limits.filterNodes + 1))).toBe('filter.a.$in: the filter has more than 1000 nodes')
    expect(refusal(listed(1_000_000))).toBe('filter.a.$in: the filter has more than 1000 nodes')
  })

  test.each(['$and', '$or'])('count the nodes of %s', name => {
    const clauses = (count: number) => ({
      [name]: Array.from({ length: count }, (_, at) => ({ [`k${at}`]: 'x' })),
    })
    const most = parseFilter(clauses(499))
    const full = Object.fromEntries(Array.from({ length: 499 }, (_, at) => [`k${at}`, 'x']))
    expect(bySql(most, full, 'text')).toBe(1)
    expect(bySql(most, {}, 'text')).toBe(0)
    expect(refusal(clauses(500))).toMatch(/more than 1000 nodes$/)
  })

  test('count the nodes of one clause and of empty clauses', () => {
    const keys = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, at) => [`k${at}`, true]))
    expect(bySql(parseFilter(keys(1_000)), keys(1_000), 'text')).toBe(1)
    expect(refusal(keys(1_001))).toMatch(/more than 1000 nodes$/)
    expect(parseFilter({ $and: Array.from({ length: 999 }, () => ({})) })).toBeDefined()
    expect(refusal({ $and: Array.from({ length: 1_000 }, () => ({})) })).toMatch(/more than 1000 nodes$/)
    const all = { a: { $all: Array.from({ length: 998 }, (_, at) => at) } }
    expect(bySql(parseFilter(all), { a: Array.from({ length: 998 }, (_, at) => 997 - at) }, 'text')).toBe(1)
  })
})
