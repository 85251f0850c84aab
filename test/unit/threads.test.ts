import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type OperationHost, threadHost } from '../../src/base/threads.ts'
import { programPath } from '../harness/program.ts'

type Echo = { echo: (input: unknown) => unknown; fall: (input: unknown) => unknown }

const worker = `
import { parentPort } from 'node:worker_threads'
parentPort.on('message', call => {
  if (call === 'close') parentPort.close()
  else if (call.name === 'fall') throw new Error('it fell')
  else parentPort.postMessage({ id: call.id, value: call.input })
})
`

/** A worker that returns its input, and throws on request. */
function open(): OperationHost<Echo> {
  const folder = mkdtempSync(join(tmpdir(), 'wb-threads-'))
  const entry = join(folder, 'worker.mjs')
  writeFileSync(entry, worker)
  const host = threadHost<Echo>(entry, {})
  onTestFinished(async () => {
    await host.close()
    rmSync(folder, { recursive: true })
  })
  return host
}

test('a crashed worker rejects its own calls, but not those of its replacement', async () => {
  const host = open()
  const fallen = [host.run('fall', 1), host.run('echo', 2)]
  const next = fallen[0]!.catch(() => host.run('echo', 3))
  for (const call of fallen) await expect(call).rejects.toThrow('it fell')
  expect(await next).toBe(3)
  expect(await host.run('echo', 4)).toBe(4)
})

test('a process that closes a busy worker lives until the worker has ended', () => {
  const { status, stdout } = spawnSync(process.execPath, [programPath('threads/close-busy')], {
    encoding: 'utf8',
  })
  expect([status, stdout]).toEqual([0, 'answered\nclosed\n'])
})
