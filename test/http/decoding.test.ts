import { expect, onTestFinished, test } from 'vitest'
import { openDecodeThread } from '../../src/http/decode-thread.ts'

function openThread() {
  const decoding = openDecodeThread()
  onTestFinished(() => decoding.close())
  return decoding
}

/** Returns a buffer with separate memory, which can be transferred to the thread. */
function bytesOf(text: string): Buffer {
  return Buffer.from(new TextEncoder().encode(text).buffer)
}

test('decodes a body with the schema of its route', async () => {
  const body = bytesOf('{"name":"a","more":1}')
  const decoded = await openThread().decode({ topic: 'workspaces', operation: 'create' }, body)
  expect(decoded).toMatchObject({ value: { name: 'a' }, ignored: ['more'] })
})

test('does not report a defect during decoding as a lack of memory', async () => {
  const decoded = openThread().decode({ topic: 'workspaces', operation: 'none' }, bytesOf('{}'))
  await expect(decoded).rejects.toThrow('Cannot destructure property')
})
