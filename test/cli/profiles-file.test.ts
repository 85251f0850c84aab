import { execSync } from 'node:child_process'
import { chmodSync, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { readProfiles } from '../../src/cli/settings/profiles.ts'
import { scratchTree } from './scratch-tree.ts'

const isRoot = process.getuid?.() === 0

function writeContent(content: unknown) {
  return (path: string) =>
    writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content))
}

test.each<[string, string, (path: string) => void]>([
  ['that is truncated', 'is not a valid profiles file', writeContent('{"profiles": ')],
  ['that is a list', 'is not a valid profiles file', writeContent([])],
  [
    'with a list in it',
    'is not a valid profiles file: "profiles" is invalid',
    writeContent({ profiles: [{}] }),
  ],
  [
    'with no profile',
    'is not a valid profiles file: "profiles.x" is invalid',
    writeContent({ profiles: { x: null } }),
  ],
  [
    'with no address',
    'is not a valid profiles file: "profiles.x" is invalid',
    writeContent({ profiles: { x: { url: 'localhost' } } }),
  ],
  ['with no name', 'is not a valid profiles file: "current" is invalid', writeContent({ current: 5 })],
  ['that is a folder', 'is not a regular file', path => mkdirSync(path)],
  ['that is a pipe', 'is not a regular file', path => execSync(`mkfifo -m 600 ${path}`)],
  ['that is a link to itself', 'cannot be read (ELOOP)', path => symlinkSync(path, path)],
  [
    'below a file',
    'cannot be read (ENOTDIR)',
    path => {
      rmSync(dirname(path), { recursive: true })
      writeFileSync(dirname(path), '')
    },
  ],
  ...(isRoot ? [] : unreadable()),
])('reports profiles.json %s with a command that fixes it', (_what, fact, lay) => {
  const settingsDir = join(scratchTree({}), 'settings')
  const path = join(settingsDir, 'profiles.json')
  mkdirSync(settingsDir)
  lay(path)
  let refused: unknown
  try {
    readProfiles(settingsDir)
  } catch (error) {
    refused = error
  }
  expect(refused).toMatchObject({ name: 'UsageError', message: `${path} ${fact}` })
  execSync((refused as { next: string[] }).next.at(-1)!)
  expect(readProfiles(settingsDir).current).toBe('default')
})

function unreadable(): [string, string, (path: string) => void][] {
  const fact = 'cannot be read (EACCES)'
  return [
    ['that may not be read', fact, path => writeFileSync(path, '{}', { mode: 0 })],
    ['in a folder that may not be entered', fact, path => chmodSync(dirname(path), 0)],
  ]
}
