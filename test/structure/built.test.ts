import { mkdirSync, mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { isStale } from './built.ts'

/** Returns a folder like this package, with sources from two minutes ago and a build from one minute ago. */
function builtPackage(): string {
  const root = mkdtempSync(join(tmpdir(), 'wb-built-'))
  onTestFinished(() => rmSync(root, { recursive: true, force: true }))
  const files = ['src/a/b.ts', 'commands/c.ts', 'scripts/build.mjs', 'package.json', 'dist/build.json']
  for (const file of files) {
    mkdirSync(join(root, dirname(file)), { recursive: true })
    writeFileSync(join(root, file), '')
  }
  const now = Date.now() / 1_000
  for (const path of [...files, 'src', 'src/a', 'commands', 'scripts'])
    utimesSync(join(root, path), now, path.startsWith('dist') ? now - 60 : now - 120)
  return root
}

test('a build that is newer than its sources is used', () => {
  expect(isStale(builtPackage())).toBe(false)
})

test.each<[string, (root: string) => void]>([
  ['the build is missing', root => rmSync(join(root, 'dist'), { recursive: true })],
  ['a source changes', root => writeFileSync(join(root, 'src/a/b.ts'), 'changed')],
  ['a source is added', root => writeFileSync(join(root, 'src/a/new.ts'), '')],
  ['a source is removed', root => rmSync(join(root, 'commands/c.ts'))],
  ['a script of the build changes', root => writeFileSync(join(root, 'scripts/build.mjs'), 'changed')],
  ['the package changes', root => writeFileSync(join(root, 'package.json'), '{}')],
])('tests start with a build if %s', (_, change) => {
  const root = builtPackage()
  change(root)
  expect(isStale(root)).toBe(true)
})
