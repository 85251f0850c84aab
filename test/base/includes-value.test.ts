import { expect, test } from 'vitest'
import { includesValue } from '../../src/base/includes-value.ts'

test('finds the same values in short and long lists, again and again', () => {
  const values = ['a', '1', 1, true, null, Number.NaN, -0]
  const long = [...values, ...Array.from({ length: 200 }, (_, n) => `other ${n}`)]
  for (const list of [values, long, values, long]) {
    for (const value of [...values, 0]) expect(includesValue(list, value)).toBe(true)
    for (const value of ['b', 2, false, undefined]) expect(includesValue(list, value)).toBe(false)
  }
})
