import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { sandboxFactory } from './sandbox.ts'
import { runInFakeTerminal, stripSequences } from './terminal.ts'

const timeout = 60_000

const demo = sandboxFactory(async ({ wb, home }) => {
  writeFileSync(join(home, 'keys.md'), 'Revoke a key, and revoke its keys, to revoke a key.')
  writeFileSync(join(home, 'apples.md'), 'Apples ripen in autumn. A gardener has a key.')
  await wb(['kb', 'create', 'handbook', '--semantic', 'off'])
  const { status, stderr } = await wb([
    'kb',
    'ingest',
    'handbook',
    join(home, 'keys.md'),
    join(home, 'apples.md'),
  ])
  expect(status, stderr).toBe(0)
})

test('wb kb search --explain shows why each passage is there', { timeout }, async () => {
  const sandbox = await demo()
  const words = ['kb', 'search', 'handbook', 'revoke keys soon', '--explain']
  const { text } = await runInFakeTerminal(sandbox, words, { cols: 80 })
  const screen = stripSequences(text)
  expect(screen).toMatch(/ranked by words \d+ %, vectors \d+ %/)
  expect(screen).toMatch(/list {5}weight {2}rank {2}score {2}scaled {3}adds/)
  expect(screen).toMatch(/words {6}\d+ % {5}1 {2}\d\.\d{3} {3}1\.000/)
  expect(screen).toMatch(/matches {2}revoke \d\.\d{3} · keys \d\.\d{3}/)
  expect(screen).toContain('lacks    soon (in no passage)')
  expect(Math.max(...screen.split(/\r?\n/).map(({ length }) => length))).toBeLessThanOrEqual(80)
  const { stdout } = await sandbox.wb([...words, '--json'])
  expect(JSON.parse(stdout)[0]).toMatchObject({
    coverage: expect.any(Number),
    explanation: { filtered: false },
  })
})

test('wb kb why-not shows what beats a document, and what could bring it in', { timeout }, async () => {
  const sandbox = await demo()
  const words = ['kb', 'why-not', 'revoke key', 'apples.md', '--limit', '1']
  const screen = stripSequences((await runInFakeTerminal(sandbox, words, { cols: 80 })).text)
  expect(screen).toMatch(/✗ apples.md is not the first result: its best passage \(chunk 0\) has rank\s+2/)
  expect(screen).toContain('score at 1')
  expect(screen).toMatch(/results\r?\n {7}1 {2}\d\.\d{4} {2}/)
  expect(screen).toMatch(/what could bring it in\r?\n {4}--limit 2/)
  const piped = await sandbox.wb(words)
  expect(piped.stdout).toMatch(/^stage\ttopK\n/)
  const { stdout } = await sandbox.wb([...words, '--where', 'lang=en', '--json'])
  expect(JSON.parse(stdout)).toMatchObject({ stage: 'filter', remedies: [{ action: 'removeFilter' }] })
  const missing = await sandbox.wb(['kb', 'why-not', 'revoke key', 'nothing.md'])
  expect(missing.status).toBe(4)
  expect(missing.stderr).toContain('No document "nothing.md"')
})

test('wb kb why-not counts at most three results of a document, as the search does', {
  timeout,
}, async () => {
  const sandbox = await demo()
  const file = join(sandbox.home, 'many.md')
  writeFileSync(
    file,
    Array.from({ length: 40 }, (_, at) => `Revoke key ${at}, revoke a key. `.repeat(10)).join('\n\n'),
  )
  await sandbox.wb(['kb', 'ingest', 'handbook', file])
  const search = await sandbox.wb(['kb', 'search', 'handbook', 'revoke key', '--limit', '5'])
  const sources = search.stdout
    .trimEnd()
    .split('\n')
    .map(line => line.split('\t')[4])
  expect(sources.filter(source => source === 'many.md')).toHaveLength(3)
  const rank = 1 + sources.indexOf('apples.md')
  const ask = async (limit: number, ...flags: string[]) =>
    (await sandbox.wb(['kb', 'why-not', 'revoke key', 'apples.md', '--limit', String(limit), ...flags]))
      .stdout
  expect(await ask(rank)).toMatch(new RegExp(`^stage\tfound\n[^]*^rank\t${rank}\n`, 'm'))
  const below = await ask(rank - 1)
  expect(below).toMatch(new RegExp(`^stage\ttopK\n[^]*^rank\t${rank}\n`, 'm'))
  expect(below).toContain(`--limit ${rank}`)
  expect(JSON.parse(await ask(rank, '--json'))).toMatchObject({ stage: 'topK' })
})

test('wb kb search and why-not shape the results with flags', { timeout }, async () => {
  const sandbox = await demo()
  const search = async (...flags: string[]) => {
    const { stdout, stderr } = await sandbox.wb([
      'kb',
      'search',
      'handbook',
      'revoke key',
      ...flags,
      '--json',
    ])
    return stderr === '' ? (JSON.parse(stdout) as { chunks?: object; explanation: object }[]) : stderr
  }
  const boost = ['--boost', '10: documentId != x', '--recency', '2: 1d']
  const flags = [
    '--group',
    '--per-group',
    '1',
    '--diversity',
    '0.5',
    '--neighbors',
    '1',
    ...boost,
    '--explain',
  ]
  expect(await search(...flags)).toMatchObject([
    { chunks: { first: 0, last: 0 }, explanation: { boost: {}, diversity: {}, group: {}, neighbors: {} } },
    {},
  ])
  expect(await search('--per-group', '2')).toContain('--group')
  const shown = await runInFakeTerminal(sandbox, ['kb', 'search', 'handbook', 'revoke key', ...flags], {
    cols: 80,
  })
  expect(stripSequences(shown.text)).toMatch(/boosted × (?:19\.9|20\.0)\d+/)
  const { stdout } = await sandbox.wb([
    ...['kb', 'why-not', 'revoke key', 'keys.md', '--limit', '1'],
    ...['--boost', '0.1: documentId != x', '--json'],
  ])
  expect(JSON.parse(stdout)).toMatchObject({ stage: 'found' })
})
