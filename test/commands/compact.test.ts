import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import { sandboxFactory } from './sandbox.ts'
import { runInFakeTerminal, stripSequences } from './terminal.ts'

vi.setConfig({ testTimeout: 60_000 })

/** A sandbox with a knowledge base that had four files, and has two. */
const handbook = sandboxFactory(async sandbox => {
  mkdirSync(join(sandbox.home, 'docs'))
  for (const name of ['keys', 'roles', 'scopes', 'rules'])
    writeFileSync(
      join(sandbox.home, 'docs', `${name}.md`),
      `# ${name}\n\n${`All about ${name}. `.repeat(300)}\n`,
    )
  const docs = join(sandbox.home, 'docs')
  const created = await sandbox.wb(['kb', 'ingest', 'handbook', docs, '--create', '--no-wait'])
  expect(created.status, created.stderr).toBe(0)
  await sandbox.wb(['documents', 'delete', 'keys.md', 'roles.md', '--yes'])
})

describe.each(['in process', 'with a server'])('wb kb compact, %s', way => {
  test('prints what was given back, and searches find the same', async () => {
    const sandbox = await handbook()
    if (way === 'with a server') await sandbox.serve()
    const search = async () => (await sandbox.wb(['kb', 'search', 'handbook', 'scopes', '--no-wait'])).stdout
    const found = await search()
    const { status, stdout, stderr } = await sandbox.wb(['kb', 'compact', 'handbook'])
    expect({ status, stderr }).toMatchObject({ status: 0 })
    const [index, file] = stdout.split('\n').map(line => line.split('\t'))
    for (const [part, row] of Object.entries({ index, file })) {
      const [name, before, after, freed] = row!
      expect(name).toBe(part)
      expect(Number(freed)).toBe(Number(before) - Number(after))
    }
    // The background work may already have removed the deleted chunks from the index.
    expect(Number(index![3])).toBeGreaterThanOrEqual(0)
    expect(stderr).toMatch(/^ {2}✓ compacted handbook\n/)
    expect(await search()).toBe(found)
    const again = await sandbox.wb(['kb', 'compact', 'handbook', '--json'])
    const { before, after } = JSON.parse(again.stdout) as { before: object; after: object }
    expect(after).toEqual(before)
    expect(after).toMatchObject({ index: { segments: 1 }, file: { freeBytes: 0, canShrink: true } })
    expect((await sandbox.wb(['kb', 'compact', 'nowhere'])).status).toBe(4)
  })
})

test('wb kb compact shows a table in a terminal', async () => {
  const sandbox = await handbook()
  const { status, text } = await runInFakeTerminal(sandbox, ['kb', 'compact', 'handbook'], { cols: 50 })
  expect(status).toBe(0)
  const screen = stripSequences(text)
  expect(screen).toMatch(
    / {2}part +before +after +freed\r?\n {2}index +\S+ K?B +\S+ K?B +\S+ K?B\r?\n {2}file /,
  )
})

test('wb kb list shows documents and sizes, which it gets in one request', async () => {
  const sandbox = await handbook()
  await sandbox.wb(['kb', 'create', 'empty'])
  const { url } = await sandbox.serve()
  const args = ['kb', 'list', '--workspace', 'default', '--url', url]
  const screen = stripSequences((await runInFakeTerminal(sandbox, args)).text)
  expect(screen).toMatch(/name +documents +size +updated/)
  expect(screen).toMatch(/handbook +2 +[\d.]+ KB/)
  expect(screen).toMatch(/empty +0 +0 B/)
  const { stderr } = await sandbox.wb([...args, '--debug'])
  expect(stderr.match(/knowledge-bases/g)).toHaveLength(1)
})
