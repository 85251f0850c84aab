import { expect, test } from 'vitest'
import { GrowingBuffer } from '../../src/base/growing-buffer.ts'

test('gathers pieces in order, and starts anew once taken', () => {
  const buffer = new GrowingBuffer(1_000_000)
  for (const piece of ['a', '', 'bc', 'd'.repeat(3_000)]) buffer.append(Buffer.from(piece))
  expect(buffer.size).toBe(3_003)
  expect(Buffer.from(buffer.take()).toString()).toBe(`abc${'d'.repeat(3_000)}`)
  buffer.append(Buffer.from('e'))
  expect(Buffer.from(buffer.take()).toString()).toBe('e')
  expect(buffer.take()).toHaveLength(0)
})

test('takes at most twice the memory of its content, however small the pieces', () => {
  const buffer = new GrowingBuffer(1_000_000)
  for (let at = 0; at < 10_000; at++) buffer.append(Buffer.from('x'))
  const taken = buffer.take()
  expect(taken).toHaveLength(10_000)
  expect(taken.buffer.byteLength).toBeLessThan(20_000)
})

test('takes memory for what has arrived, and never more than its content may have', () => {
  const begun = new GrowingBuffer(10_000_000)
  begun.append(Buffer.alloc(100))
  expect(begun.take().buffer.byteLength).toBe(100)
  const buffer = new GrowingBuffer(1_000)
  for (let at = 0; at < 10; at++) buffer.append(Buffer.alloc(100))
  expect(buffer.take().buffer.byteLength).toBe(1_000)
})
