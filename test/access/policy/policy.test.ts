import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { policyIssues, requirePolicy } from '../../../src/access/policy/check.ts'
import {
  compilePolicy,
  missingAttributePlaceholder,
  toApiFilter,
  toFilter,
} from '../../../src/access/policy/compile.ts'
import { evaluatePolicy } from '../../../src/access/policy/evaluate.ts'
import { parsePolicy } from '../../../src/access/policy/parse.ts'
import { matchesFilter, parseFilter } from '../../../src/storage/filter.ts'
import { PayloadTable } from '../../storage/payload-table.ts'
import { formatPolicy, policies, principals, rows } from './arbitrary.ts'

const alice = { id: 'alice', attributes: { team: 'blue' } }
const defaultPredicate =
  "$principal.admin = 'true' OR current_principal_id() = ANY(visible_to) OR '*' = ANY(visible_to)"

function compileFilter(dsl: string, principal = alice): unknown {
  return toApiFilter(compilePolicy(parsePolicy(dsl), principal))
}

function isAllowed(dsl: string, row: Record<string, unknown>): boolean {
  const [policy, json] = [parsePolicy(dsl), JSON.parse(JSON.stringify(row)) as Record<string, unknown>]
  const byEvaluator = evaluatePolicy(policy, alice, json)
  expect(matchesFilter(toFilter(compilePolicy(policy, alice)), json), dsl).toBe(byEvaluator)
  return byEvaluator
}

describe('compilePolicy', () => {
  test.each([
    ["status = 'open'", { status: 'open' }],
    ["'open' = status", { status: 'open' }],
    ["row.status <> 'open'", { status: { $ne: 'open' } }],
    ["status != 'open'", { status: { $ne: 'open' } }],
    ['level < 3', { level: { $lt: 3 } }],
    ['3 < level', { level: { $gt: 3 } }],
    ['3 >= level', { level: { $lte: 3 } }],
    ["status IN ('a', 2, TRUE)", { status: { $in: ['a', 2, true] } }],
    ["'x' = any(tags)", { tags: 'x' }],
    ["tags @> ARRAY['x', 'y']", { tags: { $all: ['x', 'y'] } }],
    ["NOT status = 'x'", { $not: { status: 'x' } }],
    ['a = 1 AND b = 2 AND c = 3', { $and: [{ a: 1 }, { b: 2 }, { c: 3 }] }],
    ['a = 1 OR b = 2 AND c = 3', { $or: [{ a: 1 }, { $and: [{ b: 2 }, { c: 3 }] }] }],
    ['(a = 1 OR b = 2) AND c = 3', { $and: [{ $or: [{ a: 1 }, { b: 2 }] }, { c: 3 }] }],
    ['team = $principal.team', { team: 'blue' }],
    ['owner = $principal.id', { owner: 'alice' }],
    ["x = 'it''s'", { x: "it's" }],
    [defaultPredicate, { $or: [{ visible_to: 'alice' }, { visible_to: '*' }] }],
    ["$principal.team = 'blue'", {}],
    ["$principal.team = 'red'", { _no_match: true }],
    ['$principal.team = 1 OR a = 1', { a: 1 }],
    ["$principal.team = 'blue' AND a = 1", { a: 1 }],
    ["$principal.team = 'blue' OR a = 1", {}],
    ["NOT ($principal.team = 'red')", {}],
    ["$principal.team <> 'red'", {}],
  ])('%s', (dsl, expected) => {
    expect(compileFilter(dsl)).toEqual(expected)
  })

  test('compiles the default predicate to a filter that matches every row for an administrator', () => {
    expect(compileFilter(defaultPredicate, { id: 'root', attributes: { admin: 'true' } as never })).toEqual(
      {},
    )
  })

  test('shows a missing attribute as a placeholder that equals no value', () => {
    expect(missingAttributePlaceholder).toMatch(/^[^\x20-\x7e]__missing__$/)
    for (const dsl of ['owner = $principal.none', '$principal.none = ANY(owner)'])
      expect(compileFilter(dsl)).toEqual({ owner: missingAttributePlaceholder })
    for (const held of [missingAttributePlaceholder, [missingAttributePlaceholder], 'x', null, undefined])
      for (const dsl of [
        'owner = $principal.none',
        '$principal.none = ANY(owner)',
        'owner <> $principal.none',
        'owner >= $principal.none',
        'owner = $principal.constructor',
      ])
        expect(isAllowed(dsl, { owner: held })).toBe(false)
  })

  test.each([
    ["NOT ($principal.none = 'a')", { _no_match: true }],
    ['NOT owner = $principal.none', { _no_match: true }],
    ['NOT NOT owner <> $principal.none', { _no_match: true }],
    ['NOT ($principal.none = ANY(owner))', { _no_match: true }],
    ["NOT ($principal.none IN ('a'))", { _no_match: true }],
    ["NOT ($principal.none = 'a' OR status = 'x')", { _no_match: true }],
    ["NOT ($principal.none = 'a') OR status = 'x'", { status: 'x' }],
    ["NOT ($principal.none = 'a' AND status = 'x')", { $not: { status: 'x' } }],
    ["NOT (owner = $principal.none AND NOT status = 'x')", { $not: { $not: { status: 'x' } } }],
    [
      "NOT ($principal.none = 'a' AND (status = 'x' OR level = 1))",
      { $not: { $or: [{ status: 'x' }, { level: 1 }] } },
    ],
    ["NOT (NOT ($principal.none = 'a') AND $principal.team = 'red')", {}],
  ])('security: %s does not hold because of a missing attribute', (dsl, expected) => {
    expect(compileFilter(dsl)).toEqual(expected)
    for (const row of [{}, { owner: 'x', status: 'x' }, { owner: ['x'], status: 'y', level: 1 }])
      expect(matchesFilter(toFilter(compilePolicy(parsePolicy(dsl), alice)), row), dsl).toBe(
        isAllowed(dsl, row),
      )
  })

  test('a row with the field of the match-none filter does not match it', () => {
    expect(isAllowed("$principal.team = 'red'", { _no_match: true })).toBe(false)
  })

  test.each([
    ['a missing value is neither equal nor unequal', "status <> 'x'", {}, false],
    ['null is unequal to everything', "status <> 'x'", { status: null }, true],
    ['values of two types are not unequal', "status <> 'x'", { status: 5 }, false],
    ['a number has no order relative to a text', "level < 'a'", { level: 5 }, false],
    ['a text has no order relative to a number', 'level > 1', { level: '5' }, false],
    ['an array is not one of its elements', "tags = 'x'", { tags: ['x'] }, false],
    ['ANY requires an array', "'x' = ANY(tags)", { tags: 'x' }, false],
    ['ANY finds an element', "'x' = ANY(tags)", { tags: ['y', 'x'] }, true],
    ['@> requires all elements', "tags @> ARRAY['x', 'y']", { tags: ['x'] }, false],
    ['texts are ordered by code point', "status < '\u{1f600}'", { status: '\ufb01' }, true],
    ['false is unequal to true', 'open <> TRUE', { open: false }, true],
    ['booleans have no order', 'open < TRUE', { open: false }, false],
    ['properties of the prototype are not columns', "constructor <> 'x'", {}, false],
  ])('%s', (_, dsl, row, expected) => {
    expect(isAllowed(dsl, row)).toBe(expected)
  })
})

describe('stores and the evaluator', () => {
  test('agree for any row and predicate', () => {
    const table = new PayloadTable()
    fc.assert(
      fc.property(policies, principals, rows, (policy, principal, row) => {
        const expected = evaluatePolicy(policy, principal, row)
        const filter = toFilter(compilePolicy(policy, principal))
        expect(matchesFilter(filter, row)).toBe(expected)
        const record = table.add(row)
        const found = table.matching(filter) ?? [record]
        table.remove(record)
        expect(found).toEqual(expected ? [record] : [])
      }),
      { numRuns: 1_000 },
    )
  })

  test('allow no row for a missing attribute that they reject for a present one', () => {
    fc.assert(
      fc.property(policies, principals, fc.string(), rows, (policy, { id }, team, row) => {
        fc.pre(evaluatePolicy(policy, { id, attributes: {} }, row))
        expect(evaluatePolicy(policy, { id, attributes: { team, admin: 'true' } }, row)).toBe(true)
      }),
      { numRuns: 1_000 },
    )
  })

  test('the displayed filter is a valid API filter', () => {
    fc.assert(
      fc.property(policies, principals, (policy, principal) => {
        expect(() => parseFilter(toApiFilter(compilePolicy(policy, principal)))).not.toThrow()
      }),
    )
  })

  test('parsing a formatted predicate gives an equivalent predicate', () => {
    fc.assert(
      fc.property(policies, principals, rows, (policy, principal, row) => {
        const dsl = formatPolicy(policy)
        fc.pre(dsl.length <= 4_000)
        const read = parsePolicy(dsl)
        expect(evaluatePolicy(read, principal, row)).toBe(evaluatePolicy(policy, principal, row))
        expect(toApiFilter(compilePolicy(read, principal))).toEqual(
          toApiFilter(compilePolicy(policy, principal)),
        )
      }),
    )
  })
})

describe('parse errors name the position', () => {
  test.each([
    ['', 'col 1: expected a column, a value or $principal, but found the end of the policy'],
    ['   ', 'col 4: expected a column'],
    ['status', 'col 7: expected a comparison, IN or @>, but found the end of the policy'],
    ["status = 'x", 'col 10: the string has no closing quote'],
    ["status = 'x' status", 'col 14: expected AND, OR or the end of the policy'],
    ['status LIKE 1', 'col 8: expected a comparison, IN or @>'],
    ['status = NULL x', 'col 15: expected AND, OR or the end of the policy'],
    ['status = -1', 'col 10: unexpected character'],
    ['status = 1.5', 'col 11: unexpected character'],
    ['status = 9007199254740993', 'col 10: expected a number up to 9007199254740991'],
    ['(status = 1', 'col 12: expected ), but found the end of the policy'],
    ['status IN ()', 'col 12: expected a column, a value or $principal'],
    ['status IN ($principal.x)', 'col 12: expected a string, a number, TRUE or FALSE'],
    ["'x' @> ARRAY['x']", 'col 1: expected a column before @>'],
    ["1 = ANY('x')", 'col 9: expected a column in ANY'],
    ['a = current_principal_id', 'col 25: expected (, but found the end of the policy'],
    ['a = $principal', 'col 5: unexpected character'],
    ['AND = 1', 'col 1: expected a column'],
    ['a = 1 -- comment', 'col 7: unexpected character'],
    ["a = 'x'; DROP TABLE x", 'col 8: unexpected character'],
    [`a = '${'x'.repeat(4_000)}'`, 'col 4001: a policy can have at most 4000 characters'],
    [`${'('.repeat(33)}a = 1${')'.repeat(33)}`, 'col 33: the policy is nested deeper than 32 levels'],
    [`${'NOT '.repeat(33)}a = 1`, 'col 129: the policy is nested deeper than 32 levels'],
  ])('%s', (dsl, message) => {
    expect(() => parsePolicy(dsl)).toThrow(message)
    expect(() => requirePolicy('policyDsl', dsl)).toThrow(`policyDsl: ${message}`)
  })

  test('keywords are case-insensitive, names are not, and row. allows columns named like keywords', () => {
    expect(compileFilter("Status = 'x' aNd nOt row.IN = tRuE")).toEqual({
      $and: [{ Status: 'x' }, { $not: { IN: true } }],
    })
    expect(parsePolicy(`${'('.repeat(32)}a = 1${')'.repeat(32)}`)).toMatchObject({ kind: 'compare' })
  })

  test('text of the maximum length parses, and adjacent parentheses do not count as nesting', () => {
    expect(parsePolicy('a = 1'.padEnd(4_000))).toMatchObject({ kind: 'compare' })
    expect(() => parsePolicy('a = 1'.padEnd(4_001))).toThrow(/^col 4001: /)
    const beside = Array.from({ length: 100 }, () => '(NOT a = 1)').join(' AND ')
    expect(parsePolicy(beside)).toMatchObject({ kind: 'and' })
  })

  test('any text either parses or is rejected with a position', () => {
    const piece = fc.constantFrom(
      'a',
      "'x'",
      '=',
      '(',
      ')',
      'AND',
      'NOT',
      'IN',
      '@>',
      '$principal.x',
      '1',
      ',',
      '[',
      'ANY',
      '<>',
    )
    const text = fc.oneof(
      fc.string(),
      fc.array(piece).map(pieces => pieces.join(' ')),
    )
    fc.assert(
      fc.property(text, dsl => {
        try {
          policyIssues(parsePolicy(dsl))
        } catch (error) {
          expect(error).toMatchObject({
            code: 'validation_error',
            message: expect.stringMatching(/^col \d+: /),
          })
        }
      }),
    )
  })
})

describe('parse errors suggest a correction', () => {
  test.each([
    ["status == 'x'", 'Write = once.'],
    ["status LIKE 'x%'", 'Patterns are not supported. Compare whole values with = or IN.'],
    ['status IS NULL', 'There is no IS NULL.'],
    ['level BETWEEN 1 AND 9', 'Write column >= 1 AND column <= 9.'],
    ["status NOT IN ('x')", 'Write NOT before the condition'],
    ["'x' IN tags", 'Write value = ANY(column)'],
    ["status IN 'x'", 'Put the values in parentheses'],
    ["ANY(tags) = 'x'", 'Write the value first'],
    ["'x' <> ANY(tags)", 'Write NOT (value = ANY(column)).'],
    ["lower(status) = 'x'", 'There are no other functions.'],
    ['in = 1', 'write row. before it'],
    ['status = "x"', 'Put strings in single quotes'],
    ["status = 'x' && level = 1", 'Write AND.'],
    ["status = 'x' || level = 1", 'Write OR.'],
    ["!(status = 'x')", 'Write NOT.'],
    ['team = $principal', 'Write $principal.NAME'],
    ['level = -1', 'Numbers are whole and not negative.'],
    ['level = 1.5', 'Numbers are whole and not negative.'],
    ["status = 'x' -- comment", 'without comments'],
    ["status = 'x' an level = 1", 'Did you mean AND?'],
    ["status = 'x' orr level = 1", 'Did you mean OR?'],
    ["status = 'x' level = 1", 'Write AND or OR between conditions.'],
    ["tags @> ARAY['x']", 'Did you mean ARRAY?'],
  ])('%s', (dsl, hint) => {
    expect(() => requirePolicy('policyDsl', dsl)).toThrow(
      expect.objectContaining({ hint: expect.stringContaining(hint) }),
    )
  })
})

describe('policy issues', () => {
  test.each([
    ['a = b', ['row_to_row_comparison']],
    ['1 = 1', ['constant_only_comparison']],
    ['$principal.a = $principal.b', ['constant_only_comparison']],
    ["$principal.a = 'x'", []],
    ['current_principal_id() = $principal.a', []],
    ["'x' = current_principal_id()", []],
    ['a IN (b)', ['row_in_value_position']],
    ['a @> ARRAY[b, 1]', ['row_in_value_position']],
    ["'x' IN ('x')", ['in_subject_not_row']],
    ['a = ANY(b)', ['any_subject_is_row']],
    ['NOT (a = b OR 1 = 1) AND c = 1', ['row_to_row_comparison', 'constant_only_comparison']],
  ])('%s', (dsl, codes) => {
    const issues = policyIssues(parsePolicy(dsl))
    expect(issues.map(({ code }) => code)).toEqual(codes)
    for (const { message, hint } of issues) expect(message + hint).toMatch(/^col \d+: .+\.$/)
    if (codes.length > 0) expect(() => requirePolicy('policyDsl', dsl)).toThrow(/^policyDsl: col \d+: /)
  })

  test.each(['a = b', 'a IN (b)', 'a = ANY(b)'])('%s cannot be compiled', dsl => {
    expect(() => compileFilter(dsl)).toThrow(/^col \d+: /)
  })
})
