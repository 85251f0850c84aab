import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
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
      '  keys\n  roles\n  ✗ This deletes 2 documents with 2 chunks\n    add --yes to go on without being asked\n',
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
  expect(nothing.stderr).toContain('Nothing to change was named')
  expect((await wb(['documents', 'update', 'keys.md', '--set', 'team'])).status).toBe(2)
  expect((await wb(['documents', 'update', 'keys.md', '--visible-to', 'a', '--admins-only'])).status).toBe(2)
})
