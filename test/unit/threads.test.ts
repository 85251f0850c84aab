import { execFileSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { type OperationHost, threadHost } from '../../src/base/threads.ts'

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

test('a process waits for a worker that closes after a pending call', () => {
  const folder = mkdtempSync(join(tmpdir(), 'wb-threads-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const entry = join(folder, 'worker.mjs')
  const slowly = worker.replace('parentPort.close()', 'setTimeout(() => parentPort.close(), 200)')
  writeFileSync(entry, slowly)
  const main = join(folder, 'main.mjs')
  const threads = join(import.meta.dirname, '../../src/base/threads.ts')
  writeFileSync(
    main,
    `import { threadHost } from ${JSON.stringify(threads)}
    const host = threadHost(${JSON.stringify(entry)}, {})
    void host.run('echo', 1)
    await host.close()
    console.log('closed')`,
  )
  const tsx = import.meta.resolve('tsx')
  expect(execFileSync(process.execPath, ['--import', tsx, main], { encoding: 'utf8' })).toBe('closed\n')
})
