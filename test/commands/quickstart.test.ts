import { execFile } from 'node:child_process'
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import { baseNameFromPath } from '../../src/cli/quickstart/plan.ts'
import { createSandbox } from './sandbox.ts'
import { runInFakeTerminal, runInTerminal, stripSequences } from './terminal.ts'

function createFolder(home: string, name: string, files: Record<string, string>): string {
  const path = join(home, name)
  mkdirSync(path)
  for (const [file, text] of Object.entries(files)) writeFileSync(join(path, file), text)
  return path
}

test('answers with citations from the sample documents, and can run again without side effects', {
  timeout: 60_000,
}, async () => {
  const sandbox = createSandbox()
  const first = stripSequences((await runInFakeTerminal(sandbox, ['quickstart'])).text)
  expect(first).toMatch(/^ {2}Workbase \d+\.\d+\.\d+ · embedded runtime · data in /)
  expect(first).toContain('✓ workspace   demo\n')
  expect(first).toMatch(/✓ knowledge {3}handbook +\d+ documents, \d+ chunks {3}\d+\.\d s\n/)
  expect(first).toMatch(/\[1\] {2}Storage › .* ▮▮▮▮▮\n/)
  // Passages are prose. In a table row, ` · ` separates the cells, as in the line of a citation.
  expect(first.split('\n').filter(line => line.startsWith('     ') && / · /.test(line))).toEqual([
    expect.stringMatching(/ · chunk \d+ · /),
    expect.stringMatching(/ · chunk \d+ · /),
    expect.stringMatching(/ · chunk \d+ · /),
  ])
  expect(first).toMatch(/ {2}Next\n {4}.* kb ingest handbook\b/)
  const again = await sandbox.wb(['quickstart'])
  expect(again.status).toBe(0)
  expect(again.stderr).toMatch(/✓ knowledge {3}handbook +\d+ documents, \d+ chunks {3}unchanged\n/)
  expect((await sandbox.wb(['workspaces', 'list'])).stdout.trimEnd().split('\n')).toHaveLength(1)
  const next = await sandbox.wb(['kb', 'search', 'how do I move my data'])
  expect(next.stdout.split('\n')[0]).toContain('docs/storage.md')
})

test('finds a section of the sample documents that uses other words than the question', async () => {
  const sandbox = createSandbox()
  const env = { WB_SEMANTIC_SEARCH: 'on' }
  expect((await sandbox.wb(['quickstart'], { env })).status).toBe(0)
  const { stdout } = await sandbox.wb(['kb', 'search', 'throw away an API token', '--json'], { env })
  expect(JSON.parse(stdout)[0].payload.chunkText).toContain('### Revoke a key')
})

describe('suggested commands', () => {
  /**
   * Starts the program through a symbolic link, as a package manager does, and returns the first words of each
   * suggested line.
   */
  async function suggestedStarts(folder: string, pathFolder?: string) {
    const sandbox = createSandbox()
    const bin = join(sandbox.home, folder)
    mkdirSync(bin, { recursive: true })
    symlinkSync(resolve('bin/run.js'), join(bin, 'wb'))
    sandbox.env.PATH = [
      ...(pathFolder === undefined ? [] : [join(sandbox.home, pathFolder)]),
      process.env.PATH,
    ].join(':')
    const sh = (line: string) =>
      promisify(execFile)('sh', ['-c', line], { cwd: sandbox.home, env: sandbox.env })
    const { stderr } = await sh(`"${join(bin, 'wb')}" quickstart`)
    const lines = stderr.slice(stderr.indexOf('  Next\n')).split('\n').slice(1, -1)
    return { sandbox, sh, lines: lines.map(line => line.trim().split(/ {2,}/)[0]!) }
  }

  test('work as typed if wb is on the PATH', { timeout: 60_000 }, async () => {
    const { sandbox, sh, lines } = await suggestedStarts('bin', 'bin')
    expect(lines).toEqual([
      'wb kb ingest handbook ./my-folder',
      'wb kb search handbook "how do I back up"',
      'wb documents show 1',
      'wb serve --open',
    ])
    expect((await sh(lines[2]!)).stdout).toContain('data')
    expect((await sh(lines[1]!)).stdout.split('\t')[4]).toBe('docs/operating.md')
    const prompted = await runInTerminal(sandbox, ['kb', 'ingest', 'handbook'], {
      answer: text => (text.includes('Which file or folder?') ? '~/none\r' : undefined),
    })
    expect(stripSequences(prompted.text)).toContain(`${sandbox.home}/none`)
  })

  test('work as typed if wb on the PATH is a script of a package manager', async () => {
    const sandbox = createSandbox()
    const folder = join(sandbox.home, 'bin')
    mkdirSync(folder)
    writeFileSync(join(folder, 'wb'), `#!/bin/sh\nexec node "${resolve('bin/run.js')}" "$@"\n`, {
      mode: 0o755,
    })
    const env = { PATH: `${folder}:${process.env.PATH}` }
    const { stderr } = await sandbox.wb(['workspaces', 'list'], { env })
    expect(stderr).toContain('\n    wb workspaces create demo\n')
  })

  test('start with npx if a package manager started wb', { timeout: 60_000 }, async () => {
    const { lines } = await suggestedStarts('node_modules/.bin', 'node_modules/.bin')
    expect(lines).toEqual([
      'npx workbase kb ingest handbook ./my-folder',
      'npx workbase kb search handbook "how do I back up"',
      'npx workbase documents show 1',
      'npx workbase serve --open',
    ])
  })

  test('start with node in a clone, and open a page of the running server', {
    timeout: 60_000,
  }, async () => {
    const sandbox = createSandbox()
    sandbox.env.PATH = process.env.PATH!
    const path = createFolder(sandbox.home, 'notes', {
      'a.md': '# Refunds\nTen days.',
      'b.md': '# Whales\nThey sing.',
    })
    await sandbox.serve()
    const { stderr } = await sandbox.wb(['quickstart', path])
    const program = `node ${resolve('bin/run.js')}`
    expect(stderr).toContain(`    ${program} kb search notes "Whales" `)
    expect(stderr).toContain(`    ${program} open `)
  })
})

test('of other commands and errors start with the words that started wb', async () => {
  const sandbox = createSandbox()
  const env = { PATH: process.env.PATH! }
  const program = `node ${resolve('bin/run.js')}`
  expect((await sandbox.wb(['workspaces', 'list'], { env })).stderr).toContain(
    `\n    ${program} workspaces create demo\n`,
  )
  const failed = await sandbox.wb(['kb', 'show', 'x'], { env })
  expect(failed.stderr).toContain(`\n    ${program} workspaces create demo\n`)
  const unknown = await sandbox.wb(['kb', 'serch'], { env })
  expect(unknown.stderr).toContain(`did you mean ${program} kb search?`)
  const json = await sandbox.wb(['kb', 'show', 'x', '--json'], { env })
  expect(JSON.parse(json.stderr).error.hint).toContain('; wb workspaces create demo')
})

describe('the sample documents answer questions of new users', () => {
  const questions: [question: string, file: string][] = [
    ['where is my data stored', 'docs/storage.md'],
    ['how do I back up', 'docs/operating.md'],
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
    const sandbox = createSandbox()
    // Without a server, so that the embedder is fitted before the command exits.
    await sandbox.wb(['quickstart'])
    await sandbox.serve()
    for (const [question, file] of questions) {
      const { stdout } = await sandbox.wb(['kb', 'search', question, '--limit', '3'])
      expect([question, stdout.split('\n').map(line => line.split('\t')[4])]).toEqual([
        question,
        expect.arrayContaining([file]),
      ])
    }
  })
})

test('ingests a folder and answers a question, in a knowledge base named after the folder', async () => {
  const sandbox = createSandbox()
  const path = createFolder(sandbox.home, 'My notes-2', {
    'a.md': '# Refunds\nA refund takes ten days.',
    'b.md': 'Whales sing.',
  })
  const { stdout, status } = await sandbox.wb(['quickstart', path, 'when is a refund paid', '--json'])
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
  expect(JSON.parse((await sandbox.wb(['quickstart', path, '--json'])).stdout)).toMatchObject({
    documents: 2,
    ingest: { added: 0, unchanged: 2 },
    question: 'Refunds',
  })
})

test('a question alone searches the sample documents, and a missing folder is a usage error', async () => {
  const sandbox = createSandbox()
  const { stdout } = await sandbox.wb(['quickstart', 'where is my data stored', '--json'])
  expect(JSON.parse(stdout)).toMatchObject({
    knowledgeBase: { name: 'handbook' },
    question: 'where is my data stored',
  })
  expect(await sandbox.wb(['quickstart', './nowhere'])).toMatchObject({ status: 2, stdout: '' })
})

test('an empty folder uses the sample documents, with a notice', async () => {
  const sandbox = createSandbox()
  const path = createFolder(sandbox.home, 'empty', {})
  const { stderr, status } = await sandbox.wb(['quickstart', path])
  expect(status).toBe(0)
  expect(stderr).toContain('contains no text')
  const inside = await sandbox.wb(['quickstart', '.'], { cwd: path })
  expect(inside.stderr).toContain(
    '  – this folder contains no text, so the Workbase documentation is used instead\n',
  )
  expect(stderr).toMatch(/✓ knowledge {3}handbook/)
})

test('derives names of knowledge bases from folder names', () => {
  expect(
    ['./docs', '/a/My notes (2)', 'naïve', '2024-notes', '...', 'x'.repeat(60)].map(baseNameFromPath),
  ).toEqual(['docs', 'My_notes_2', 'naive', 'notes', 'handbook', 'x'.repeat(48)])
})
