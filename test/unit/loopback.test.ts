import { expect, test } from 'vitest'
import { isLoopback } from '../../src/base/loopback.ts'

test.each(['127.0.0.1', '127.9.9.9', '::1', '[::1]', 'localhost', 'wb.localhost'])(
  '%s is this machine',
  host => {
    expect(isLoopback(host)).toBe(true)
  },
)

test.each([
  '0.0.0.0',
  '::',
  '[::]',
  '10.0.0.1',
  '1270.0.0.1',
  'workbase',
  '127.evil.example',
  '127.0.0.1.evil.example',
  'localhost.evil.example',
  'evillocalhost',
  '',
])('"%s" can be another machine', host => {
  expect(isLoopback(host)).toBe(false)
})
