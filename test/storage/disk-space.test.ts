import { expect, test } from 'vitest'
import type { OperationHost } from '../../src/base/threads.ts'
import { DiskSpace } from '../../src/storage/disk-space.ts'

test('an observed write still transfers its buffers to the worker', async () => {
  const moved: unknown[] = []
  const writes: OperationHost<{ keep(bytes: Uint8Array): void }> = {
    run: async (_name, _input, transfer) => void moved.push(transfer) as never,
    close: async () => {},
  }
  const bytes = new Uint8Array(8)
  await new DiskSpace('.').observe(writes).run('keep', bytes, [bytes.buffer])
  expect(moved).toEqual([[bytes.buffer]])
})
