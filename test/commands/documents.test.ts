import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { type Sandbox, sandboxFactory } from './sandbox.ts'
import { runInFakeTerminal, stripSequences } from './terminal.ts'

vi.setConfig({ testTimeout: 60_000 })

/** A sandbox with a knowledge base of three files. */
const handbook = sandboxFactory(async sandbox => {
  mkdirSync(join(sandbox.home, 'docs'))
  for (const name of ['keys', 'roles', 'scopes'])
    writeFileSync(join(sandbox.home, 'docs', `${name}.md`), `# ${name}\n\nAll about ${name}.\n`)
  const created = await sandbox.wb([
    'kb',
    'ingest',
    'handbook',
    join(sandbox.home, 'docs'),
    '--create',
    '--no-wait',
  ])
  expect(created.status, created.stderr).toBe(0)
})

async function names({ wb }: Sandbox): Promise<string[]> {
  const { stdout } = await wb(['documents', 'list', '--json'])
  return (JSON.parse(stdout) as { sourceFilename: string }[]).map(row => row.sourceFilename).sort()
}

test('deletes several documents at once, after it shows their names and number', async () => {
  const sandbox = await handbook()
  await sandbox.serve()
  const unasked = await sandbox.wb(['documents', 'delete', 'keys.md', 'roles.md'])
  expect(unasked).toEqual({
    status: 2,
    stdout: '',
    stderr:
      '  keys\n  roles\n  ✗ This deletes 2 documents with 2 chunks\n    add --yes to skip the confirmation\n',
  })
  const unknown = await sandbox.wb(['documents', 'delete', 'keys.md', 'nowhere.md', '--yes'])
  expect(unknown.status).toBe(4)
  expect(await names(sandbox)).toEqual(['keys.md', 'roles.md', 'scopes.md'])
  const deleted = await sandbox.wb(['documents', 'delete', 'keys.md', 'roles.md', 'keys.md', '--yes'])
  expect(deleted).toEqual({
    status: 0,
    stdout: '',
    stderr: '  ✓ deleted 2 documents\n  wb documents restore\n',
  })
  expect(await names(sandbox)).toEqual(['scopes.md'])
  expect((await sandbox.wb(['documents', 'delete'])).status).toBe(2)
})

test('explains in words how a document was ingested', async () => {
  const sandbox = await handbook()
  const { status, stdout } = await sandbox.wb(['documents', 'explain', 'keys.md'])
  expect(status).toBe(0)
  const lines = Object.fromEntries(
    stdout
      .trimEnd()
      .split('\n')
      .map(line => line.split('\t')),
  )
  expect(lines).toMatchObject({
    document: 'keys',
    status: 'ready',
    text: '24 B',
    split: expect.stringMatching(/^1 chunk of up to [\d,]+ characters \(sentence:1\), \d+ ms$/),
    embedded: expect.stringMatching(/^about 8 tokens, with the built-in embedder, \d+ ms$/),
    took: expect.stringMatching(/^\d+ ms$/),
  })
  expect(Object.keys(lines)).not.toContain('failed')
  const json = await sandbox.wb(['documents', 'explain', 'keys.md', '--json'])
  expect(JSON.parse(json.stdout)).toMatchObject({ status: 'ready', report: { chunks: 1 } })
})

test('suggests a document with the same file name in a folder', async () => {
  const sandbox = await handbook()
  const folder = join(sandbox.home, 'docs', 'guide')
  mkdirSync(folder)
  writeFileSync(join(folder, 'steps.md'), 'Three steps.')
  await sandbox.wb(['kb', 'ingest', 'handbook', join(sandbox.home, 'docs'), '--no-wait'])
  const { status, stderr } = await sandbox.wb(['documents', 'show', 'steps.md'])
  expect(status).toBe(4)
  expect(stderr).toContain('\n    did you mean guide/steps.md?\n    wb documents list handbook\n')
})

test('--json lists the deleted documents and the failures', async () => {
  const sandbox = await handbook()
  const { status, stdout } = await sandbox.wb([
    'documents',
    'delete',
    'keys.md',
    'roles.md',
    '--yes',
    '--json',
  ])
  expect(status).toBe(0)
  expect(JSON.parse(stdout)).toEqual({ deleted: [expect.any(String), expect.any(String)], failed: [] })
})

test('changes single metadata fields and the visibility of a document', async () => {
  const { wb, serve } = await handbook()
  await serve()
  const showDocument = async () => JSON.parse((await wb(['documents', 'show', 'keys.md', '--json'])).stdout)
  const updated = await wb(['documents', 'update', 'keys.md', '--set', 'team=platform', '--set', 'draft=yes'])
  expect(updated.status, updated.stderr).toBe(0)
  expect(updated.stdout).toMatch(/^[0-9a-f-]{36}\n$/)
  expect(await showDocument()).toMatchObject({ metadata: { title: 'keys', team: 'platform', draft: 'yes' } })
  await wb([
    'documents',
    'update',
    'keys.md',
    '--unset',
    'draft',
    '--visible-to',
    'bob',
    '--visible-to',
    'ann',
  ])
  const changed = await showDocument()
  expect(changed).toMatchObject({ metadata: { title: 'keys', team: 'platform' }, visibleTo: ['ann', 'bob'] })
  expect(changed.metadata).not.toHaveProperty('draft')
  await wb(['documents', 'update', 'keys.md', '--admins-only'])
  expect(await showDocument()).toMatchObject({ metadata: { team: 'platform' }, visibleTo: null })
})

test('rejects a change without fields or with an invalid pair as a usage error', async () => {
  const { wb } = await handbook()
  const nothing = await wb(['documents', 'update', 'keys.md'])
  expect(nothing.status).toBe(2)
  expect(nothing.stderr).toContain('No change was requested')
  expect((await wb(['documents', 'update', 'keys.md', '--set', 'team'])).status).toBe(2)
  expect((await wb(['documents', 'update', 'keys.md', '--visible-to', 'a', '--admins-only'])).status).toBe(2)
})

const filler = (word: string) =>
  Array.from(
    { length: 12 },
    (_, at) => `Sentence ${at} of this section is about ${word} and nothing else.`,
  ).join(' ')
const guide = [
  '# Guide',
  `## Refunds\n\n${filler('money')}`,
  `## Storage\n\n${filler('shelves')}\n\nThe zanzibar shelf is on the left.\n\nIt holds the archive.\n\n${filler('archives')}`,
  `## Opening hours\n\n${filler('time')}`,
].join('\n\n')

const guideBase = sandboxFactory(async sandbox => {
  mkdirSync(join(sandbox.home, 'docs'))
  writeFileSync(join(sandbox.home, 'docs', 'guide.md'), `${guide}\n`)
  const created = await sandbox.wb([
    'kb',
    'ingest',
    'handbook',
    join(sandbox.home, 'docs'),
    '--create',
    '--no-wait',
  ])
  expect(created.status, created.stderr).toBe(0)
})

/**
 * Creates a sandbox in which the last search found a passage in the second section of a guide, after its first
 * chunk.
 */
async function sandboxAfterSearch() {
  const sandbox = await guideBase()
  const found = await sandbox.wb([
    'kb',
    'search',
    'handbook',
    'zanzibar',
    '--mode',
    'lexical',
    '--limit',
    '1',
  ])
  const chunkIndex = Number(found.stdout.split('\t')[3])
  expect(chunkIndex, found.stdout).toBeGreaterThan(0)
  return { ...sandbox, chunkIndex }
}

describe('a passage number of the last search', () => {
  test('fails with the number of results if it is too high', async () => {
    const { wb } = await sandboxAfterSearch()
    expect(await wb(['documents', 'show', '99'])).toEqual({
      status: 4,
      stdout: '',
      stderr:
        '  ✗ No document "99" in handbook; the last search had 1 result (document_not_found)\n    wb documents list handbook\n',
    })
    const chunks = await wb(['documents', 'chunks', '[2]'])
    expect(chunks.stderr).toContain('the last search had 1 result (')
    const named = await wb(['documents', 'show', '99', '--kb', 'handbook'])
    expect(named.stderr).toContain('✗ No document "99" in handbook (document_not_found)\n')
  })

  test('fails with a hint if there was no search', async () => {
    const { wb } = await handbook()
    const { status, stderr } = await wb(['documents', 'show', '1'])
    expect(status).toBe(4)
    expect(stderr).toContain('✗ No document "1" in handbook; no search has found anything yet (')
  })

  test('cannot delete a document, and the error suggests the command that shows the file', async () => {
    const { wb } = await sandboxAfterSearch()
    const { status, stderr } = await wb(['documents', 'delete', '1', '--yes'])
    expect(status).toBe(4)
    expect(stderr).toContain('search result numbers cannot be used to delete (document_not_found)\n')
    expect(stderr).toContain('    wb documents show 1    shows the document\n')
  })

  test('shows the passage in its section with a bar in a terminal', async () => {
    const sandbox = await sandboxAfterSearch()
    const { status, text } = await runInFakeTerminal(sandbox, ['documents', 'show', '1'])
    const seen = stripSequences(text)
    expect(status, seen).toBe(0)
    expect(seen).toMatch(/\[1\] Guide › Storage\n {2}guide\.md · chunk \d+ · [0-9a-f-]{36}\n\n/)
    expect(seen).toContain('\n  ▌ The zanzibar shelf is on the left.\n')
    expect(text).toMatch(/\x1b\[32m▌/)
    expect(seen).not.toContain('money')
    expect(seen).not.toContain('hash')
    expect(seen).toMatch(/wb documents show 1 --full {4}the whole document\n {2}wb documents chunks 1 /)
  })

  test('does not truncate the ID in a narrow terminal', async () => {
    const sandbox = await sandboxAfterSearch()
    const { text } = await runInFakeTerminal(sandbox, ['documents', 'show', '1'], { cols: 45 })
    // On a slow machine, progress is drawn first and then overwritten.
    const lines = stripSequences(text)
      .split('\n')
      .map(line => line.slice(line.lastIndexOf('\r') + 1))
    expect(lines).toContainEqual(expect.stringMatching(/^ {2}guide\.md · chunk \d+$/))
    expect(lines).toContainEqual(expect.stringMatching(/^ {2}[0-9a-f-]{36}$/))
    for (const line of lines) expect(line.startsWith('  wb ') || line.length <= 45, line).toBe(true)
  })

  test('shows the whole document with --full, and a bar at the passage', async () => {
    const sandbox = await sandboxAfterSearch()
    const { text } = await runInFakeTerminal(sandbox, ['documents', 'show', '1', '--full'])
    const seen = stripSequences(text)
    expect(seen).toContain('\n  ▌ The zanzibar shelf is on the left.\n')
    for (const word of ['money', 'shelves', 'time'])
      expect(seen).toContain(`Sentence 0 of this section is about ${word}`)
    expect(seen).toMatch(/\n {4}Refunds\n/)
  })

  test('prints the plain text of the section in a pipe, and of the document with --full', async () => {
    const { wb } = await sandboxAfterSearch()
    const { status, stdout, stderr } = await wb(['documents', 'show', '[1]'])
    expect(status, stderr).toBe(0)
    expect(stdout).toContain('The zanzibar shelf is on the left.\n\nIt holds the archive.\n')
    expect(guide).toContain(stdout.trim())
    expect(stdout).not.toMatch(/money|time|hash|▌/)
    expect((await wb(['documents', 'show', '1', '--full'])).stdout).toBe(`${guide}\n`)
    expect((await wb(['documents', 'show', 'guide.md', '--full'])).stdout).toBe(`${guide}\n`)
  })

  test('adds the passage to --json, and the text with --full', async () => {
    const { wb, chunkIndex } = await sandboxAfterSearch()
    const showDocument = async (...args: string[]) =>
      JSON.parse((await wb(['documents', 'show', ...args, '--json'])).stdout) as Record<string, unknown>
    const named = await showDocument('guide.md')
    const { passage, ...document } = await showDocument('1')
    expect(document).toEqual(named)
    expect(passage).toEqual({
      chunkIndex,
      text: expect.stringContaining('zanzibar'),
      context: expect.stringContaining('It holds the archive.'),
    })
    expect(named).not.toHaveProperty('passage')
    expect((await showDocument('guide.md', '--full')).text).toBe(`${guide}\n`)
  })

  test('lists the chunks starting with the cited one', async () => {
    const { wb, chunkIndex } = await sandboxAfterSearch()
    const indices = async (name: string) => {
      const { stdout } = await wb(['documents', 'chunks', name, '--json'])
      return (JSON.parse(stdout) as { chunkIndex: number }[]).map(chunk => chunk.chunkIndex)
    }
    const all = await indices('guide.md')
    expect(all[0]).toBe(0)
    expect(await indices('1')).toEqual(all.slice(chunkIndex))
  })
})
