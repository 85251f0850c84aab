import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { threadHost } from '../../src/base/threads.ts'
import { WbError } from '../../src/contract/errors.ts'

test('an error that ends a thread keeps its code', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'wb-threads-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const entry = join(folder, 'worker.mjs')
  const error = "{ name: 'WbError', code: 'control_plane_unavailable', facts: { hint: 'Check the disk.' } }"
  await writeFile(entry, `throw Object.assign(new Error('no disk'), ${error})`)
  const host = threadHost<{ read(input: object): string }>(entry, undefined, {})
  const failure = await Promise.resolve(host.run('read', {})).catch((thrown: unknown) => thrown)
  expect(failure).toBeInstanceOf(WbError)
  expect(failure).toMatchObject({ code: 'control_plane_unavailable', message: 'no disk' })
})
