import { expect, test } from 'vitest'
import { serverSentEvents } from '../../src/base/server-sent-events.ts'
import { collect } from '../../src/client/client.ts'

/** Sends a text in chunks of `size` bytes. */
async function* chunks(text: string, size: number) {
  const bytes = new TextEncoder().encode(text)
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

const text = ': ping\n\nid: 1\nevent: token\ndata: é\ndata: b\n\ndata:c\r\n\r\nid: 2\n\ndata: cut short\n'

test.each([1, 2, 3, 7, 1_000])('reads events from chunks of %i bytes', async size => {
  expect(await collect(serverSentEvents(chunks(text, size), 100))).toEqual([
    { id: '1', event: 'token', data: 'é\nb' },
    { id: undefined, event: undefined, data: 'c' },
  ])
})

test.each([
  ['one line', `data: ${'x'.repeat(200)}\n\n`],
  ['many lines', `${'data: xxxx\n'.repeat(40)}\n`],
])('rejects an event that is too long, of %s', async (_, long) => {
  await expect(collect(serverSentEvents(chunks(long, 10), 100))).rejects.toThrow('more than 100 characters')
})
