import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { aloneWithLogins } from '../../src/cli/sign-in/lock.ts'
import { scratchTree } from './scratch-tree.ts'

const header = Buffer.from('SQLite format 3\0')

test.each<[string, (path: string) => void]>([
  ['garbage', path => writeFileSync(path, 'x'.repeat(5_000))],
  ['a broken database', path => writeFileSync(path, Buffer.concat([header, Buffer.alloc(5_000, 7)]))],
  ['a folder', path => mkdirSync(path)],
  ['a pipe', path => void execFileSync('mkfifo', [path])],
])('%s where the lock of the logins should be is told, with the line that takes it away', async (_, lay) => {
  const settingsDir = scratchTree({})
  const path = join(settingsDir, 'refresh.lock')
  lay(path)
  const work = aloneWithLogins({ settingsDir }, new AbortController().signal, async () => 'done')
  await expect(work).rejects.toMatchObject({
    name: 'UsageError',
    message: `${path} is not a lock file`,
    next: [`rm -r ${path}`],
  })
})

test('an empty file is a lock', async () => {
  const settingsDir = scratchTree({ 'refresh.lock': '' })
  const work = aloneWithLogins({ settingsDir }, new AbortController().signal, async () => 'done')
  expect(await work).toBe('done')
})
