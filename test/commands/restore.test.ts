import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { type Sandbox, sandboxFactory } from './sandbox.ts'

vi.setConfig({ testTimeout: 60_000 })

/** A sandbox with a knowledge base of three files. */
const handbook = sandboxFactory(async sandbox => {
  mkdirSync(join(sandbox.home, 'docs'))
  for (const name of ['keys', 'roles', 'scopes'])
    writeFileSync(join(sandbox.home, 'docs', `${name}.md`), `# ${name}\n\nAll about ${name}.\n`)
  const docs = join(sandbox.home, 'docs')
  const created = await sandbox.wb(['kb', 'ingest', 'handbook', docs, '--create', '--no-wait'])
  expect(created.status, created.stderr).toBe(0)
})

async function names({ wb }: Sandbox, ...flags: string[]): Promise<string[]> {
  const { stdout } = await wb(['documents', 'list', '--json', ...flags])
  const rows = JSON.parse(stdout) as ({ sourceFilename: string } | { document: { sourceFilename: string } })[]
  return rows.map(row => ('document' in row ? row.document : row).sourceFilename).sort()
}

test('restores the last deletion, or a document by name', async () => {
  const sandbox = await handbook()
  await sandbox.serve()
  expect(await sandbox.wb(['documents', 'restore'])).toMatchObject({
    status: 4,
    stderr: expect.stringContaining('No deleted document can be restored'),
  })
  expect(await sandbox.wb(['documents', 'delete', 'scopes.md', '--yes'])).toMatchObject({ status: 0 })
  await sandbox.wb(['documents', 'delete', 'keys.md', 'roles.md', '--yes'])
  expect(await names(sandbox, '--deleted')).toEqual(['keys.md', 'roles.md', 'scopes.md'])

  const last = await sandbox.wb(['documents', 'restore'])
  expect(last).toEqual({ status: 0, stdout: '', stderr: '  ✓ restored 2 documents\n' })
  expect(await names(sandbox)).toEqual(['keys.md', 'roles.md'])
  const one = await sandbox.wb(['documents', 'restore', 'scopes.md'])
  expect(one).toEqual({ status: 0, stdout: '', stderr: '  ✓ restored document scopes\n' })
  expect(await names(sandbox)).toEqual(['keys.md', 'roles.md', 'scopes.md'])
  const { stdout } = await sandbox.wb(['search', 'scopes', '--json'])
  expect(stdout).toContain('All about scopes.')
})

test('names a document that cannot be restored, and restores the others', async () => {
  const sandbox = await handbook()
  await sandbox.serve()
  await sandbox.wb(['documents', 'delete', 'keys.md', 'roles.md', '--yes'])
  writeFileSync(join(sandbox.home, 'docs', 'keys.md'), 'New keys.\n')
  await sandbox.wb(['kb', 'ingest', 'handbook', join(sandbox.home, 'docs', 'keys.md'), '--no-wait'])
  const { status, stdout, stderr } = await sandbox.wb(['documents', 'restore', '--json'])
  expect(status).toBe(1)
  expect(JSON.parse(stdout)).toMatchObject({
    restored: [{ sourceFilename: 'roles.md' }],
    failed: [{ code: 'restore_conflict', message: expect.stringContaining("'keys.md'") }],
  })
  expect(stderr).toContain('1 of 2 documents were not restored')
})

test('--permanently deletes documents, also from the trash', async () => {
  const sandbox = await handbook()
  await sandbox.serve()
  await sandbox.wb(['documents', 'delete', 'keys.md', '--yes'])
  const { stdout } = await sandbox.wb([
    'documents',
    'delete',
    'keys.md',
    'roles.md',
    '--permanently',
    '--yes',
    '--json',
  ])
  expect(JSON.parse(stdout)).toEqual({ deleted: [expect.any(String), expect.any(String)], failed: [] })
  await sandbox.wb(['documents', 'delete', 'scopes.md', '--permanently', '--yes'])
  expect(await names(sandbox)).toEqual([])
  expect(await names(sandbox, '--deleted')).toEqual([])
})
