import { describe, expect, test } from 'vitest'
import { arrayOf, differences, isoMs, near, oneOf, optional, uuid } from './exactly.ts'

describe('exact comparison', () => {
  test.each([
    ['a missing field', {}, { a: 1 }, '$.a: is missing'],
    ['an extra field', { a: 1, b: 2 }, { a: 1 }, '$.b: is not in the contract (2)'],
    ['another value', { a: { b: [1, 2] } }, { a: { b: [1, 3] } }, '$.a.b[1]: expected 3, got 2'],
    ['another type', { a: '1' }, { a: 1 }, '$.a: expected 1, got "1"'],
    ['null for absent', { a: null }, {}, '$.a: is not in the contract (null)'],
    ['a shorter array', [1], [1, 2], '$: expected 2 elements, got 1: [1]'],
    ['an object for an array', {}, [], '$: expected an array, got {}'],
    ['undefined for an object', undefined, {}, '$: expected an object, got undefined'],
  ])('finds %s at its path', (_, actual, expected, difference) => {
    expect(differences(actual, expected)).toEqual([difference])
  })

  test('matchers reject values that they do not describe', () => {
    const id = '9b1c1a52-6f0e-4c0e-9d53-2f3a4b5c6d7e'
    expect(differences(id, uuid)).toEqual([])
    expect(differences(id.toUpperCase(), uuid)).toHaveLength(1)
    expect(differences('2026-04-22T10:11:12.345Z', isoMs)).toEqual([])
    expect(differences('2026-04-22T10:11:12Z', isoMs)).toHaveLength(1)
    expect(differences(0.5, near(0.6))).toHaveLength(1)
    expect(differences([{ a: 1 }, { a: 2 }], arrayOf({ a: oneOf(1, 3) }))).toHaveLength(1)
    expect(differences({}, { a: optional(1) })).toEqual([])
    expect(differences({ a: 2 }, { a: optional(1) })).toHaveLength(1)
  })
})
