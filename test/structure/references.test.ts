import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { requirementsIn } from '../../scripts/write-requirements-doc.ts'
import { brokenLinks, outsideReferences, unknownIds } from './references.ts'

const requirements = requirementsIn(readFileSync('docs/requirements.md', 'utf8')).map(({ id }) => id)
const rules = readFileSync('docs/security.md', 'utf8').match(/^### Rule \d+$/gm)!

test('every cited requirement and security rule exists', () => {
  expect(unknownIds(requirements, rules.length)).toEqual([])
})

test('every page, link and anchor in a reference exists', () => {
  expect(brokenLinks()).toEqual([])
})

test('every source file in a page exists', () => {
  const pages = [
    'README.md',
    'CONTRIBUTING.md',
    ...readdirSync('docs', { recursive: true, encoding: 'utf8' })
      .filter(name => name.endsWith('.md'))
      .map(name => join('docs', name)),
  ]
  const named = pages.flatMap(page =>
    [...readFileSync(page, 'utf8').matchAll(/`((?:src|commands|test|scripts|bench|bin)\/[\w./-]+)`/g)].map(
      ([, path]) => ({ page, path: path! }),
    ),
  )
  expect(named.length).toBeGreaterThan(60)
  // Created by the steps of "Add a command".
  const missing = named.filter(({ path }) => !existsSync(path) && path !== 'commands/kb/count.ts')
  expect(missing).toEqual([])
})

test('the architecture page lists every room, and follows an API key through six files', () => {
  const page = readFileSync('docs/architecture.md', 'utf8')
  const [, table] = /## Modules\n([\s\S]*?)\n## /.exec(page)!
  const rooms = readdirSync('src', { withFileTypes: true }).filter(entry => entry.isDirectory())
  expect(rooms.map(({ name }) => name).filter(name => !table!.includes(`\`${name}\``))).toEqual([])
  const [, walk] = /### An API key[^\n]*\n([\s\S]*?)\nThese six files/.exec(page)!
  const files = [...walk!.matchAll(/^\d\. `(src\/[\w./-]+)`/gm)].map(([, path]) => path!)
  expect(files).toHaveLength(5)
  const [, authenticate, verifier] = files.map(file => readFileSync(file, 'utf8'))
  expect(readFileSync(files[0]!, 'utf8')).toContain('context.authenticate(')
  expect(authenticate).toContain('verifier.verify(')
  for (const [called, file] of [
    ['Admission', './admission.ts'],
    ['matchesDigest', './token.ts'],
  ] as const) {
    expect(verifier).toMatch(new RegExp(`^import .*\\b${called}\\b.* from '${file}'$`, 'm'))
    expect(files).toContain(join('src/auth/keys', file))
  }
})

test('no reference to a document outside the repository exists', () => {
  expect(outsideReferences()).toEqual([])
})
