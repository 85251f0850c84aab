import { expect, onTestFinished, test } from 'vitest'
import { openDecodeThread } from '../../src/http/decode-thread.ts'

function open() {
  const decoding = openDecodeThread()
  onTestFinished(() => decoding.close())
  return decoding
}

/** Bytes of their own, which can move to the thread. */
function bytesOf(text: string): Buffer {
  return Buffer.from(new TextEncoder().encode(text).buffer)
}

test('a body is decoded with the schema of its route', async () => {
  const body = bytesOf('{"name":"a","more":1}')
  const decoded = await open().decode({ topic: 'workspaces', operation: 'create' }, body)
  expect(decoded).toMatchObject({ value: { name: 'a' }, ignored: ['more'] })
})

test('a defect while a body is decoded is not taken for a lack of memory', async () => {
  const decoded = open().decode({ topic: 'workspaces', operation: 'none' }, bytesOf('{}'))
  await expect(decoded).rejects.toThrow('Cannot destructure property')
})
