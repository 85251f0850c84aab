import { expect, test } from 'vitest'
import { BoundedCache } from '../../src/base/bounded-cache.ts'

test('a bounded cache drops entries that were not used for long', () => {
  const cache = new BoundedCache<number, string>(4)
  for (let key = 0; key < 100; key++) {
    cache.set(key, `value ${key}`)
    expect(cache.get(0)).toBe('value 0')
  }
  expect([96, 97].map(key => cache.get(key))).toEqual([undefined, undefined])
  expect(cache.get(99)).toBe('value 99')
})
