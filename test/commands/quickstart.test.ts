import { execFile } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { baseNameFromPath } from '../../src/cli/quickstart/plan.ts'
import { inFakeTerminal, inTerminal, withoutSequences } from './terminal.ts'
import { place } from './wb.ts'

function folder(home: string, name: string, files: Record<string, string>): string {
  const path = join(home, name)
  mkdirSync(path)
  for (const [file, text] of Object.entries(files)) writeFileSync(join(path, file), text)
  return path
}

test('from nothing to a cited answer over the shipped documents, and again without harm', {
  timeout: 60_000,
}, async () => {
  const here = place()
  const first = withoutSequences((await inFakeTerminal(here, ['quickstart'])).text)
  expect(first).toMatch(/^ {2}Workbase \d+\.\d+\.\d+ · embedded runtime · data in /)
  expect(first).toContain('✓ workspace   demo\n')
  expect(first).toMatch(/✓ knowledge {3}handbook +\d+ documents, \d+ chunks {3}\d+\.\d s\n/)
  expect(first).toMatch(/\[1\] {2}Storage › .* ▮▮▮▮▮\n/)
  // Passages are prose. In a row of a table, ` · ` separates the cells, as in the line of a citation.
  expect(first.split('\n').filter(line => line.startsWith('     ') && / · /.test(line))).toEqual([
    expect.stringMatching(/ · chunk \d+ · /),
    expect.stringMatching(/ · chunk \d+ · /),
    expect.stringMatching(/ · chunk \d+ · /),
  ])
  expect(first).toMatch(/ {2}Next\n {4}.* kb ingest handbook\b/)
  const again = await here.wb(['quickstart'])
  expect(again.status).toBe(0)
  expect(again.stderr).toMatch(/✓ knowledge {3}handbook +\d+ documents, \d+ chunks {3}unchanged\n/)
  expect((await here.wb(['workspaces', 'list'])).stdout.trimEnd().split('\n')).toHaveLength(1)
  const next = await here.wb(['kb', 'search', 'how do I move my data'])
  expect(next.stdout.split('\n')[0]).toContain('docs/storage.md')
})

describe('lines to type next', () => {
  /** Starts the program by a link, as a package manager does, and returns what each line begins with. */
  async function suggested(folder: string, pathFolder?: string) {
    const here = place()
    const bin = join(here.home, folder)
    mkdirSync(bin, { recursive: true })
    symlinkSync(resolve('bin/run.js'), join(bin, 'wb'))
    here.env.PATH = [
      ...(pathFolder === undefined ? [] : [join(here.home, pathFolder)]),
      process.env.PATH,
    ].join(':')
    const sh = (line: string) => promisify(execFile)('sh', ['-c', line], { cwd: here.home, env: here.env })
    const { stderr } = await sh(`"${join(bin, 'wb')}" quickstart`)
    const lines = stderr.slice(stderr.indexOf('  Next\n')).split('\n').slice(1, -1)
    return { here, sh, lines: lines.map(line => line.trim().split(/ {2,}/)[0]!) }
  }

  test('work as typed where wb is on the path', { timeout: 60_000 }, async () => {
    const { here, sh, lines } = await suggested('bin', 'bin')
    expect(lines).toEqual([
      'wb kb ingest handbook ./my-folder',
      'wb kb search handbook "how do I back up"',
      'wb documents show 1',
      'wb serve --open',
    ])
    expect((await sh(lines[2]!)).stdout).toContain('data')
    expect((await sh(lines[1]!)).stdout.split('\t')[4]).toBe('docs/storage.md')
    const asked = await inTerminal(here, ['kb', 'ingest', 'handbook'], {
      answer: text => (text.includes('Which file or folder?') ? '~/none\r' : undefined),
    })
    expect(withoutSequences(asked.text)).toContain(`${here.home}/none`)
  })

  test('work as typed where wb on the path is a script of a package manager', async () => {
    const here = place()
    const folder = join(here.home, 'bin')
    mkdirSync(folder)
    writeFileSync(join(folder, 'wb'), `#!/bin/sh\nexec node "${resolve('bin/run.js')}" "$@"\n`, {
      mode: 0o755,
    })
    const env = { PATH: `${folder}:${process.env.PATH}` }
    const { stderr } = await here.wb(['workspaces', 'list'], { env })
    expect(stderr).toContain('\n    wb workspaces create demo\n')
  })

  test('start with npx where a package manager started wb', { timeout: 60_000 }, async () => {
    const { lines } = await suggested('node_modules/.bin', 'node_modules/.bin')
    expect(lines).toEqual([
      'npx workbase kb ingest handbook ./my-folder',
      'npx workbase kb search handbook "how do I back up"',
      'npx workbase documents show 1',
      'npx workbase serve --open',
    ])
  })

  test('start with node in a clone, and open a page of the server that runs', {
    timeout: 60_000,
  }, async () => {
    const here = place()
    here.env.PATH = process.env.PATH!
    const path = folder(here.home, 'notes', {
      'a.md': '# Refunds\nTen days.',
      'b.md': '# Whales\nThey sing.',
    })
    await here.serve()
    const { stderr } = await here.wb(['quickstart', path])
    const program = `node ${resolve('bin/run.js')}`
    expect(stderr).toContain(`    ${program} kb search notes "Whales" `)
    expect(stderr).toContain(`    ${program} open `)
  })
})

test('other commands and errors suggest lines that start with the words that started wb', async () => {
  const here = place()
  const env = { PATH: process.env.PATH! }
  const program = `node ${resolve('bin/run.js')}`
  expect((await here.wb(['workspaces', 'list'], { env })).stderr).toContain(
    `\n    ${program} workspaces create demo\n`,
  )
  const failed = await here.wb(['kb', 'show', 'x'], { env })
  expect(failed.stderr).toContain(`\n    ${program} workspaces create demo\n`)
  const unknown = await here.wb(['kb', 'serch'], { env })
  expect(unknown.stderr).toContain(`did you mean ${program} kb search?`)
  const json = await here.wb(['kb', 'show', 'x', '--json'], { env })
  expect(JSON.parse(json.stderr).error.hint).toContain('; wb workspaces create demo')
})

describe('what is shipped answers what newcomers ask', () => {
  const asked: [question: string, file: string][] = [
    ['where is my data stored', 'docs/storage.md'],
    ['how do I back up', 'docs/storage.md'],
    ['which files are left out', 'docs/ingesting.md'],
    ['can I read PDF files', 'docs/ingesting.md'],
    ['do I need a server', 'docs/getting-started.md'],
    ['what leaves my machine', 'docs/security.md'],
    ['filter by metadata', 'docs/searching.md'],
    ['exit status when interrupted', 'docs/cli.md'],
    ['how does an agent answer', 'docs/agents.md'],
    ['how are api keys rotated', 'docs/cli.md'],
  ]
  test('within the first three passages', { timeout: 60_000 }, async () => {
    const here = place()
    await here.serve()
    await here.wb(['quickstart'])
    for (const [question, file] of asked) {
      const { stdout } = await here.wb(['kb', 'search', question, '--limit', '3'])
      expect([question, stdout.split('\n').map(line => line.split('\t')[4])]).toEqual([
        question,
        expect.arrayContaining([file]),
      ])
    }
  })
})

test('a folder and a question; the knowledge base is named after the folder', async () => {
  const here = place()
  const path = folder(here.home, 'My notes-2', {
    'a.md': '# Refunds\nA refund takes ten days.',
    'b.md': 'Whales sing.',
  })
  const { stdout, status } = await here.wb(['quickstart', path, 'when is a refund paid', '--json'])
  expect(status).toBe(0)
  const started = JSON.parse(stdout)
  expect(started).toMatchObject({
    workspace: { name: 'demo' },
    knowledgeBase: { name: 'My_notes_2' },
    documents: 2,
    ingest: { added: 2, failed: [] },
    question: 'when is a refund paid',
  })
  expect(started.passages[0].text).toContain('ten days')
  expect(JSON.parse((await here.wb(['quickstart', path, '--json'])).stdout)).toMatchObject({
    documents: 2,
    ingest: { added: 0, unchanged: 2 },
    question: 'Refunds',
  })
})

test('a question alone is asked of the shipped documents; a folder that is none is a usage error', async () => {
  const here = place()
  const { stdout } = await here.wb(['quickstart', 'where is my data stored', '--json'])
  expect(JSON.parse(stdout)).toMatchObject({
    knowledgeBase: { name: 'handbook' },
    question: 'where is my data stored',
  })
  expect(await here.wb(['quickstart', './nowhere'])).toMatchObject({ status: 2, stdout: '' })
})

test('an empty folder has the shipped documents stand in, and says so', async () => {
  const here = place()
  const path = folder(here.home, 'empty', {})
  const { stderr, status } = await here.wb(['quickstart', path])
  expect(status).toBe(0)
  expect(stderr).toContain('contains no text')
  const inside = await here.wb(['quickstart', '.'], { cwd: path })
  expect(inside.stderr).toContain(
    '  – this folder contains no text, so the documents of Workbase are used instead\n',
  )
  expect(stderr).toMatch(/✓ knowledge {3}handbook/)
})

test('names of knowledge bases are made of what folders are called', () => {
  expect(
    ['./docs', '/a/My notes (2)', 'naïve', '2024-notes', '...', 'x'.repeat(60)].map(baseNameFromPath),
  ).toEqual(['docs', 'My_notes_2', 'naive', 'notes', 'handbook', 'x'.repeat(48)])
})
