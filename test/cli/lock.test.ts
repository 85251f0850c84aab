import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { withLoginsLock } from '../../src/cli/credentials/logins-lock.ts'
import { scratchTree } from './scratch-tree.ts'

const header = Buffer.from('SQLite format 3\0')

test.each<[string, (path: string) => void]>([
  ['garbage', path => writeFileSync(path, 'x'.repeat(5_000))],
  ['a broken database', path => writeFileSync(path, Buffer.concat([header, Buffer.alloc(5_000, 7)]))],
  ['a folder', path => mkdirSync(path)],
  ['a pipe', path => void execFileSync('mkfifo', [path])],
])('reports %s in place of the login lock, with a command that removes it', async (_, lay) => {
  const settingsDir = scratchTree({})
  const path = join(settingsDir, 'refresh.lock')
  lay(path)
  const work = withLoginsLock({ settingsDir }, new AbortController().signal, async () => 'done')
  await expect(work).rejects.toMatchObject({
    name: 'UsageError',
    message: `${path} is not a lock file`,
    next: [`rm -r ${path}`],
  })
})

const isRoot = process.getuid?.() === 0

test.each<
  [string, boolean, (folder: string, path: string) => void, (folder: string, path: string) => string]
>([
  [
    'a dangling link',
    true,
    (_folder, path) => symlinkSync('/nowhere/lock', path),
    (_folder, path) => `rm -f ${path}`,
  ],
  [
    'a file without permission to open',
    !isRoot,
    (_folder, path) => writeFileSync(path, '', { mode: 0 }),
    (_folder, path) => `rm -f ${path}`,
  ],
  [
    'a folder without write permission',
    !isRoot,
    folder => chmodSync(folder, 0o500),
    folder => `chmod u+rwx ${folder}`,
  ],
])('reports %s with its path and a command that fixes it', async (_what, isTried, lay, mend) => {
  if (!isTried) return
  const settingsDir = scratchTree({})
  const path = join(settingsDir, 'refresh.lock')
  lay(settingsDir, path)
  const work = () => withLoginsLock({ settingsDir }, new AbortController().signal, async () => 'done')
  const refused = await work().catch((error: unknown) => error)
  expect(refused).toMatchObject({
    name: 'UsageError',
    message: expect.stringMatching(`^${path} cannot be opened \\(\\w+\\)$`),
    next: [mend(settingsDir, path)],
  })
  execFileSync('/bin/sh', ['-c', mend(settingsDir, path)])
  expect(await work()).toBe('done')
})

test('accepts an empty file as a lock', async () => {
  const settingsDir = scratchTree({ 'refresh.lock': '' })
  const work = withLoginsLock({ settingsDir }, new AbortController().signal, async () => 'done')
  expect(await work).toBe('done')
})
