import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { inFakeTerminal, withoutSequences } from './terminal.ts'
import { type Place, placesLike } from './wb.ts'

vi.setConfig({ testTimeout: 60_000 })

/** A place with a knowledge base of three files. */
const handbook = placesLike(async here => {
  mkdirSync(join(here.home, 'docs'))
  for (const name of ['keys', 'roles', 'scopes'])
    writeFileSync(join(here.home, 'docs', `${name}.md`), `# ${name}\n\nAll about ${name}.\n`)
  const made = await here.wb(['kb', 'ingest', 'handbook', join(here.home, 'docs'), '--create', '--no-wait'])
  expect(made.status, made.stderr).toBe(0)
})

async function names({ wb }: Place): Promise<string[]> {
  const { stdout } = await wb(['documents', 'list', '--json'])
  return (JSON.parse(stdout) as { sourceFilename: string }[]).map(row => row.sourceFilename).sort()
}

test('several documents go at once, after their names and a count were shown', async () => {
  const here = await handbook()
  await here.serve()
  const unasked = await here.wb(['documents', 'delete', 'keys.md', 'roles.md'])
  expect(unasked).toEqual({
    status: 2,
    stdout: '',
    stderr:
      '  keys\n  roles\n  ✗ This deletes 2 documents with 2 chunks\n    add --yes to skip the confirmation\n',
  })
  const unknown = await here.wb(['documents', 'delete', 'keys.md', 'nowhere.md', '--yes'])
  expect(unknown.status).toBe(4)
  expect(await names(here)).toEqual(['keys.md', 'roles.md', 'scopes.md'])
  const gone = await here.wb(['documents', 'delete', 'keys.md', 'roles.md', 'keys.md', '--yes'])
  expect(gone).toEqual({ status: 0, stdout: '', stderr: '  ✓ deleted 2 documents\n' })
  expect(await names(here)).toEqual(['scopes.md'])
  expect((await here.wb(['documents', 'delete'])).status).toBe(2)
})

test('--json of several prints what went and what did not', async () => {
  const here = await handbook()
  const { status, stdout } = await here.wb(['documents', 'delete', 'keys.md', 'roles.md', '--yes', '--json'])
  expect(status).toBe(0)
  expect(JSON.parse(stdout)).toEqual({ deleted: [expect.any(String), expect.any(String)], failed: [] })
})

test('metadata is changed field by field, and who may see it', async () => {
  const { wb, serve } = await handbook()
  await serve()
  const shown = async () => JSON.parse((await wb(['documents', 'show', 'keys.md', '--json'])).stdout)
  const said = await wb(['documents', 'update', 'keys.md', '--set', 'team=platform', '--set', 'draft=yes'])
  expect(said.status, said.stderr).toBe(0)
  expect(said.stdout).toMatch(/^[0-9a-f-]{36}\n$/)
  expect(await shown()).toMatchObject({ metadata: { title: 'keys', team: 'platform', draft: 'yes' } })
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
  const changed = await shown()
  expect(changed).toMatchObject({ metadata: { title: 'keys', team: 'platform' }, visibleTo: ['ann', 'bob'] })
  expect(changed.metadata).not.toHaveProperty('draft')
  await wb(['documents', 'update', 'keys.md', '--admins-only'])
  expect(await shown()).toMatchObject({ metadata: { team: 'platform' }, visibleTo: null })
})

test('a change that names nothing, or no pair, is a matter of usage', async () => {
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

const guideBase = placesLike(async here => {
  mkdirSync(join(here.home, 'docs'))
  writeFileSync(join(here.home, 'docs', 'guide.md'), `${guide}\n`)
  const made = await here.wb(['kb', 'ingest', 'handbook', join(here.home, 'docs'), '--create', '--no-wait'])
  expect(made.status, made.stderr).toBe(0)
})

/** A place where the last search found a passage in the second section of a guide, beyond its first chunk. */
async function searched() {
  const here = await guideBase()
  const found = await here.wb(['kb', 'search', 'handbook', 'zanzibar', '--mode', 'lexical', '--limit', '1'])
  const chunkIndex = Number(found.stdout.split('\t')[3])
  expect(chunkIndex, found.stdout).toBeGreaterThan(0)
  return { ...here, chunkIndex }
}

describe('the number of a passage of the last search', () => {
  test('that is too high says how many results the search had', async () => {
    const { wb } = await searched()
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

  test('before any search says that there was none', async () => {
    const { wb } = await handbook()
    const { status, stderr } = await wb(['documents', 'show', '1'])
    expect(status).toBe(4)
    expect(stderr).toContain('✗ No document "1" in handbook; there was no search yet (')
  })

  test('deletes nothing, and the error names the command that shows the file', async () => {
    const { wb } = await searched()
    const { status, stderr } = await wb(['documents', 'delete', '1', '--yes'])
    expect(status).toBe(4)
    expect(stderr).toContain('search result numbers cannot be used to delete (document_not_found)\n')
    expect(stderr).toContain('    wb documents show 1    shows the document\n')
  })

  test('shows the passage in its section with a bar in a terminal', async () => {
    const here = await searched()
    const { status, text } = await inFakeTerminal(here, ['documents', 'show', '1'])
    const seen = withoutSequences(text)
    expect(status, seen).toBe(0)
    expect(seen).toMatch(/\[1\] Guide › Storage\n {2}guide\.md · chunk \d+ · [0-9a-f-]{36}\n\n/)
    expect(seen).toContain('\n  ▌ The zanzibar shelf is on the left.\n')
    expect(text).toMatch(/\x1b\[32m▌/)
    expect(seen).not.toContain('money')
    expect(seen).not.toContain('hash')
    expect(seen).toMatch(/wb documents show 1 --full {4}the whole document\n {2}wb documents chunks 1 /)
  })

  test('does not truncate the ID in a narrow terminal', async () => {
    const here = await searched()
    const { text } = await inFakeTerminal(here, ['documents', 'show', '1'], { cols: 45 })
    // A slow machine shows what is going on, and then writes over it.
    const lines = withoutSequences(text)
      .split('\n')
      .map(line => line.slice(line.lastIndexOf('\r') + 1))
    expect(lines).toContainEqual(expect.stringMatching(/^ {2}guide\.md · chunk \d+$/))
    expect(lines).toContainEqual(expect.stringMatching(/^ {2}[0-9a-f-]{36}$/))
    for (const line of lines) expect(line.startsWith('  wb ') || line.length <= 45, line).toBe(true)
  })

  test('shows the whole document with --full, and a bar at the passage', async () => {
    const here = await searched()
    const { text } = await inFakeTerminal(here, ['documents', 'show', '1', '--full'])
    const seen = withoutSequences(text)
    expect(seen).toContain('\n  ▌ The zanzibar shelf is on the left.\n')
    for (const word of ['money', 'shelves', 'time'])
      expect(seen).toContain(`Sentence 0 of this section is about ${word}`)
    expect(seen).toMatch(/\n {4}Refunds\n/)
  })

  test('prints the plain text of the section in a pipe, and of the document with --full', async () => {
    const { wb } = await searched()
    const { status, stdout, stderr } = await wb(['documents', 'show', '[1]'])
    expect(status, stderr).toBe(0)
    expect(stdout).toContain('The zanzibar shelf is on the left.\n\nIt holds the archive.\n')
    expect(guide).toContain(stdout.trim())
    expect(stdout).not.toMatch(/money|time|hash|▌/)
    expect((await wb(['documents', 'show', '1', '--full'])).stdout).toBe(`${guide}\n`)
    expect((await wb(['documents', 'show', 'guide.md', '--full'])).stdout).toBe(`${guide}\n`)
  })

  test('adds the passage to --json, and the text with --full', async () => {
    const { wb, chunkIndex } = await searched()
    const shown = async (...args: string[]) =>
      JSON.parse((await wb(['documents', 'show', ...args, '--json'])).stdout) as Record<string, unknown>
    const named = await shown('guide.md')
    const { passage, ...document } = await shown('1')
    expect(document).toEqual(named)
    expect(passage).toEqual({
      chunkIndex,
      text: expect.stringContaining('zanzibar'),
      context: expect.stringContaining('It holds the archive.'),
    })
    expect(named).not.toHaveProperty('passage')
    expect((await shown('guide.md', '--full')).text).toBe(`${guide}\n`)
  })

  test('lists the chunks starting with the cited one', async () => {
    const { wb, chunkIndex } = await searched()
    const indices = async (name: string) => {
      const { stdout } = await wb(['documents', 'chunks', name, '--json'])
      return (JSON.parse(stdout) as { chunkIndex: number }[]).map(chunk => chunk.chunkIndex)
    }
    const all = await indices('guide.md')
    expect(all[0]).toBe(0)
    expect(await indices('1')).toEqual(all.slice(chunkIndex))
  })
})
