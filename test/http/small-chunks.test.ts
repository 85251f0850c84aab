import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { asyncProperty, assert as check, constantFrom, array as listOf, nat } from 'fast-check'
import { expect, onTestFinished, test } from 'vitest'
import { joinSmallChunks } from '../../src/http/small-chunks.ts'

/** Sends a body in chunks of these sizes, and returns the request before its body is read. */
async function sendChunks(sizes: readonly number[]): Promise<{ message: IncomingMessage; sent: Buffer }> {
  const server = createServer(joinSmallChunks)
  const request = once(server, 'request')
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {})
  onTestFinished(() => void server.close())
  onTestFinished(() => void socket.destroy())
  socket.write('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n')
  const chunks = sizes.map((size, at) => Buffer.alloc(size, String(at)))
  const framed = chunks.map(each => `${each.length.toString(16)}\r\n${each}\r\n`)
  socket.write(`${framed.join('')}0\r\n\r\n`)
  const [message] = (await request) as [IncomingMessage]
  return { message, sent: Buffer.concat(chunks) }
}

test('delivers a body unchanged, regardless of its chunks', async () => {
  const size = constantFrom(1, 2, 100, 1_023, 1_024, 1_025, 5_000, 20_000)
  await check(
    asyncProperty(listOf(size, { maxLength: 30 }), nat(20), async (sizes, repeat) => {
      const { message, sent } = await sendChunks(Array.from({ length: repeat }, () => sizes).flat())
      const received = Buffer.concat(await message.toArray())
      expect(received.equals(sent)).toBe(true)
    }),
    { numRuns: 50 },
  )
})

test('buffers chunks of one byte in a few larger pieces', async () => {
  const { message } = await sendChunks(Array.from({ length: 15_000 }, () => 1))
  await expect.poll(() => message.readableLength).toBe(15_000)
  let pieces = 0
  for await (const _ of message) pieces++
  expect(pieces).toBeLessThan(20)
})

test('delivers a chunk without waiting for the next one', async () => {
  const server = createServer(joinSmallChunks)
  const request = once(server, 'request')
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1')
  onTestFinished(() => void server.close())
  onTestFinished(() => void socket.destroy())
  socket.write('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n')
  const [message] = (await request) as [IncomingMessage]
  const [chunk] = (await once(message, 'data')) as [Buffer]
  expect(String(chunk)).toBe('ab')
})

test('uses no more memory than the content of chunks that arrive one by one', async () => {
  const server = createServer(joinSmallChunks)
  const request = once(server, 'request')
  await once(server.listen(0, '127.0.0.1'), 'listening')
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').setNoDelay()
  onTestFinished(() => void server.close())
  onTestFinished(() => void socket.destroy())
  socket.write('POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n')
  const [message] = (await request) as [IncomingMessage]
  const chunks: Buffer[] = []
  message.on('data', (chunk: Buffer) => chunks.push(chunk))
  for (let sent = 1; sent <= 20; sent++) {
    socket.write('1\r\nx\r\n')
    await expect.poll(() => Buffer.concat(chunks).length, { interval: 1 }).toBe(sent)
  }
  // Chunks may share the memory of Node's buffer pool.
  const held = [...new Set(chunks.map(({ buffer }) => buffer))].map(({ byteLength }) => byteLength)
  expect(held.reduce((sum, bytes) => sum + bytes)).toBeLessThan(20 * 9_000)
})
