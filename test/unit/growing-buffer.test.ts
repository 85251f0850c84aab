import { expect, test } from 'vitest'
import { GrowingBuffer } from '../../src/base/growing-buffer.ts'

test('joins pieces in order, and is empty after its content was taken', () => {
  const buffer = new GrowingBuffer(1_000_000)
  for (const piece of ['a', '', 'bc', 'd'.repeat(3_000)]) buffer.append(Buffer.from(piece))
  expect(buffer.size).toBe(3_003)
  expect(Buffer.from(buffer.take()).toString()).toBe(`abc${'d'.repeat(3_000)}`)
  buffer.append(Buffer.from('e'))
  expect(Buffer.from(buffer.take()).toString()).toBe('e')
  expect(buffer.take()).toHaveLength(0)
})

test('uses at most twice the memory of its content, for pieces of any size', () => {
  const buffer = new GrowingBuffer(1_000_000)
  for (let at = 0; at < 10_000; at++) buffer.append(Buffer.from('x'))
  const taken = buffer.take()
  expect(taken).toHaveLength(10_000)
  expect(taken.buffer.byteLength).toBeLessThan(20_000)
})

test('allocates memory as data arrives, and at most the maximum length', () => {
  const begun = new GrowingBuffer(10_000_000)
  begun.append(Buffer.alloc(100))
  expect(begun.take().buffer.byteLength).toBe(100)
  const buffer = new GrowingBuffer(1_000)
  for (let at = 0; at < 10; at++) buffer.append(Buffer.alloc(100))
  expect(buffer.take().buffer.byteLength).toBe(1_000)
})
