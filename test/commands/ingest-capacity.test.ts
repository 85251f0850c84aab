import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createSandbox } from './sandbox.ts'

/** A sandbox whose queue has room for three of the five files in its folder. */
function setUp() {
  const sandbox = createSandbox()
  const ingestQueue = { totalBytes: 1_000_000, perWorkspaceBytes: 1_000_000 }
  const config = join(sandbox.home, 'workbase.yaml')
  writeFileSync(config, JSON.stringify({ version: 1, runtime: { ingestQueue } }))
  const folder = join(sandbox.home, 'files')
  mkdirSync(folder)
  const words = 'The wing of the aircraft bends in the wind. '.repeat(7_000)
  for (let n = 0; n < 5; n++) writeFileSync(join(folder, `${n}.txt`), `${n} ${words}`)
  return { sandbox, folder, config }
}

test.each([true, false])(
  'ingest waits until the queue has room for a text (server: %s)',
  async hasServer => {
    const { sandbox, folder, config } = setUp()
    if (hasServer) await sandbox.serve(['--config', config])
    const place = hasServer ? [] : ['--config', config]
    const ingest = ['kb', 'ingest', 'papers', folder, '--create', '--async', '--json', ...place]
    const { status, stderr } = await sandbox.wb(ingest)
    expect([status, stderr]).toEqual([0, expect.not.stringMatching(/overloaded/)])
    await expect
      .poll(
        async () => {
          const { stdout } = await sandbox.wb(['documents', 'list', 'papers', '--json'])
          return (JSON.parse(stdout) as { status: string }[]).map(({ status }) => status)
        },
        { timeout: 60_000 },
      )
      .toEqual(Array.from({ length: 5 }, () => 'ready'))
  },
  90_000,
)
