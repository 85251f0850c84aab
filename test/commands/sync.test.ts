import {
  chmodSync,
  cpSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { createDraw } from '../access/row-model-state.ts'
import { FakeIo } from '../harness/fake-io.ts'
import { runInProcess } from '../harness/in-process.ts'
import { type Sandbox, sandboxFactory } from './sandbox.ts'

vi.setConfig({ testTimeout: 60_000 })

interface SyncedDocument {
  readonly documentId: string
  readonly sourceFilename: string
  readonly metadata: Record<string, string>
}

/** A sandbox with a knowledge base, and a folder of two files that was synced to it. */
const synced = sandboxFactory(async sandbox => {
  write(sandbox, 'guide/keys.md', '# Keys\n\nAll about keys.\n')
  write(sandbox, 'roles.md', '# Roles\n\nAll about roles.\n')
  // A sandbox is copied to another path, so the folder needs a fixed ID.
  const { status, stderr } = await sync(sandbox, '--create')
  expect(status, stderr).toBe(0)
})

const folderOf = ({ home }: Sandbox) => join(home, 'docs')

function write(sandbox: Sandbox, name: string, text: string): void {
  const path = join(folderOf(sandbox), name)
  mkdirSync(join(path, '..'), { recursive: true })
  writeFileSync(path, text)
}

const remove = (sandbox: Sandbox, name: string) => rmSync(join(folderOf(sandbox), name))

async function sync(sandbox: Sandbox, ...flags: string[]) {
  return sandbox.wb(['kb', 'sync', 'handbook', folderOf(sandbox), '--as', 'docs', ...flags])
}

async function syncJson(sandbox: Sandbox, ...flags: string[]): Promise<Record<string, unknown>> {
  return JSON.parse((await sync(sandbox, '--json', ...flags)).stdout)
}

async function list({ wb }: Sandbox): Promise<SyncedDocument[]> {
  return JSON.parse((await wb(['documents', 'list', 'handbook', '--json'])).stdout)
}

async function names(sandbox: Sandbox): Promise<string[]> {
  return (await list(sandbox)).map(({ sourceFilename }) => sourceFilename).sort()
}

test('adds, replaces and renames documents, and deletes those whose files are gone', async () => {
  const sandbox = await synced()
  await sandbox.serve()
  expect(await syncJson(sandbox)).toMatchObject({
    unchanged: 2,
    added: 0,
    changed: 0,
    renamed: 0,
    deleted: 0,
  })
  const before = await list(sandbox)
  write(sandbox, 'scopes.md', '# Scopes\n\nAll about scopes.\n')
  write(sandbox, 'roles.md', '# Roles\n\nRoles were changed.\n')
  mkdirSync(join(folderOf(sandbox), 'moved'))
  renameSync(join(folderOf(sandbox), 'guide/keys.md'), join(folderOf(sandbox), 'moved/keys.md'))
  const plan = {
    added: ['scopes.md'],
    changed: ['roles.md'],
    renamed: [{ from: 'guide/keys.md', to: 'moved/keys.md' }],
    deleted: [],
  }
  expect(await syncJson(sandbox, '--dry-run')).toMatchObject({ dryRun: true, plan, added: 0 })
  expect(await list(sandbox)).toEqual(before)
  expect(await syncJson(sandbox)).toMatchObject({ plan, added: 1, changed: 1, renamed: 1, failed: 0 })
  expect(await names(sandbox)).toEqual(['moved/keys.md', 'roles.md', 'scopes.md'])
  const idOf = (all: SyncedDocument[], name: string) =>
    all.find(({ sourceFilename }) => sourceFilename === name)!.documentId
  expect(idOf(await list(sandbox), 'moved/keys.md')).toBe(idOf(before, 'guide/keys.md'))

  remove(sandbox, 'moved/keys.md')
  const kept = await sync(sandbox)
  expect(kept).toMatchObject({ status: 0, stderr: expect.stringContaining('add --delete') })
  expect(await names(sandbox)).toContain('moved/keys.md')
  const deleted = await sync(sandbox, '--delete')
  expect(deleted).toMatchObject({ status: 0, stderr: expect.stringContaining('wb documents restore') })
  expect(await names(sandbox)).toEqual(['roles.md', 'scopes.md'])
  await sandbox.wb(['documents', 'restore'])
  expect(await names(sandbox)).toEqual(['moved/keys.md', 'roles.md', 'scopes.md'])
})

test('does not touch documents of another folder, or that were ingested otherwise', async () => {
  const sandbox = await synced()
  await sandbox.serve()
  const other = join(sandbox.home, 'other')
  mkdirSync(other)
  for (const name of ['loose.md', 'also-here.md']) writeFileSync(join(other, name), `${name} of elsewhere`)
  await sandbox.wb(['kb', 'ingest', 'handbook', join(other, 'loose.md'), '--no-wait'])
  await sandbox.wb(['kb', 'sync', 'handbook', other, '--no-wait'])
  write(sandbox, 'loose.md', 'mine')
  write(sandbox, 'also-here.md', 'mine, too')
  const others = (await list(sandbox)).filter(({ sourceFilename }) => /loose|also/.test(sourceFilename))
  const refused = await sync(sandbox, '--delete', '--json')
  expect(refused.status).toBe(1)
  expect(JSON.parse(refused.stdout)).toMatchObject({ plan: { taken: ['also-here.md', 'loose.md'] } })
  expect(await list(sandbox)).toEqual(expect.arrayContaining(others))
  const adopted = await syncJson(sandbox, '--adopt', '--delete')
  expect(adopted).toMatchObject({ plan: { taken: ['also-here.md'], added: ['loose.md'] }, changed: 1 })
  expect(await names(sandbox)).toEqual(['also-here.md', 'guide/keys.md', 'loose.md', 'roles.md'])
})

test('reads .gitignore and .wbignore', async () => {
  const sandbox = await synced()
  write(sandbox, '.wbignore', 'drafts/\n*.log\n!keep.log\n')
  write(sandbox, '.gitignore', 'secret.md\nkeep.log\n')
  for (const name of ['drafts/a.md', 'b.log', 'keep.log', 'secret.md', 'shown.md']) write(sandbox, name, name)
  expect(await syncJson(sandbox, '--no-wait')).toMatchObject({ plan: { added: ['keep.log', 'shown.md'] } })
})

test('a changed document keeps its visibility and its metadata', async () => {
  const sandbox = await synced()
  await sandbox.serve()
  await sandbox.wb(['documents', 'update', 'roles.md', '--set', 'team=red', '--visible-to', 'ann'])
  write(sandbox, 'roles.md', '# Duties\n\nNew text.\n')
  await sync(sandbox)
  const { stdout } = await sandbox.wb(['documents', 'show', 'roles.md', '--json'])
  expect(JSON.parse(stdout)).toMatchObject({ visibleTo: ['ann'], metadata: { team: 'red', title: 'Duties' } })
})

test('a folder without files deletes nothing without --yes, nor does a folder that cannot be read', async () => {
  const sandbox = await synced()
  await sandbox.serve()
  if (process.getuid?.() !== 0) {
    chmodSync(join(folderOf(sandbox), 'guide'), 0)
    expect(await sync(sandbox, '--delete')).toMatchObject({ status: 1 })
    chmodSync(join(folderOf(sandbox), 'guide'), 0o700)
    expect(await names(sandbox)).toHaveLength(2)
  }
  rmSync(folderOf(sandbox), { recursive: true })
  expect(await sync(sandbox, '--delete', '--yes')).toMatchObject({ status: 2 })
  mkdirSync(folderOf(sandbox))
  expect(await syncJson(sandbox, '--delete')).toMatchObject({ deleted: 0, kept: 2 })
  expect(await syncJson(sandbox, '--yes')).toMatchObject({ deleted: 2 })
})

test('files with the same content have one document, which moves to a file that remains', async () => {
  const sandbox = await synced()
  await sandbox.serve()
  write(sandbox, 'copy.md', '# Roles\n\nAll about roles.\n')
  expect(await syncJson(sandbox)).toMatchObject({ duplicates: 1, added: 0, failed: 0 })
  remove(sandbox, 'roles.md')
  expect(await syncJson(sandbox)).toMatchObject({ renamed: 1, deleted: 0 })
  expect(await names(sandbox)).toEqual(['copy.md', 'guide/keys.md'])
})

test('syncs files that the runtime converts to text, and renames them without a new upload', async () => {
  const sandbox = await synced()
  await sandbox.serve()
  const file = 'test/fixtures/files/officer-example.docx'
  cpSync(file, join(folderOf(sandbox), 'example.docx'))
  expect(await syncJson(sandbox)).toMatchObject({ added: 1, failed: 0 })
  expect(await syncJson(sandbox)).toMatchObject({ added: 0, changed: 0, unchanged: 3 })
  renameSync(join(folderOf(sandbox), 'example.docx'), join(folderOf(sandbox), 'renamed.docx'))
  expect(await syncJson(sandbox)).toMatchObject({ renamed: 1, added: 0 })
  expect(await names(sandbox)).toContain('renamed.docx')
})

test('--watch follows changes until it is interrupted', async () => {
  const sandbox = await synced()
  await sandbox.serve()
  const io = new FakeIo({ env: sandbox.env, cwd: sandbox.home, keyCost: sandbox.keyCost })
  const args = ['kb', 'sync', 'handbook', folderOf(sandbox), '--as', 'docs', '--watch', '--delete']
  const ended = runInProcess(args, io)
  await vi.waitUntil(() => io.stderr.text.includes('watching'), { timeout: 20_000 })
  write(sandbox, 'sub/new.md', '# New\n\nA new file in a new folder.\n')
  await vi.waitUntil(async () => (await names(sandbox)).includes('sub/new.md'), { timeout: 20_000 })
  remove(sandbox, 'roles.md')
  await vi.waitUntil(async () => !(await names(sandbox)).includes('roles.md'), { timeout: 20_000 })
  io.signals.raise('SIGINT')
  expect(await ended).toBe(0)
  expect(await names(sandbox)).toEqual(['guide/keys.md', 'sub/new.md'])
})

test('prints the plan and the counts', async () => {
  const sandbox = await synced()
  await sandbox.serve()
  write(sandbox, 'new.md', 'New.')
  remove(sandbox, 'roles.md')
  const { status, stdout, stderr } = await sync(sandbox, '--dry-run')
  expect(status).toBe(0)
  expect(stdout).toContain('added\t1\nchanged\t0\nrenamed\t0\ndeleted\t1\nunchanged\t1\n')
  expect(stderr).toBe('  + new.md\n  - roles.md\n')
})

test.each([1, 2, 3, 4, 5, 6, 7, 8])(
  'any sequence of changes ends with the documents of the files (seed %i)',
  async seed => {
    const sandbox = await synced()
    await sandbox.serve()
    const draw = createDraw(seed)
    const folder = folderOf(sandbox)
    const files = () =>
      readdirSync(folder, { recursive: true, encoding: 'utf8' })
        .filter(name => /\.(md|txt)$/.test(name))
        .sort()
    for (let round = 0; round < 8; round++) {
      for (let change = 0; change < 6; change++) {
        const name = `f${draw.below(5)}.${draw.pick(['md', 'txt'])}`
        const all = files()
        if (all.length === 0 || draw.chance(0.4)) write(sandbox, name, `Text ${draw.below(6)}.`)
        else if (draw.chance(0.3)) remove(sandbox, draw.pick(all))
        else if (draw.chance(0.5)) renameSync(join(folder, draw.pick(all)), join(folder, name))
        else {
          const [one, other] = [join(folder, draw.pick(all)), join(folder, draw.pick(all))]
          const text = readFileSync(one)
          writeFileSync(one, readFileSync(other))
          writeFileSync(other, text)
        }
      }
      const result = await syncJson(sandbox, '--yes')
      expect(result).toMatchObject({ failed: 0 })
      const stored = new Map<string, string>()
      for (const { sourceFilename, documentId } of await list(sandbox)) {
        const { stdout } = await sandbox.wb(['documents', 'show', documentId, '--full', '--json'])
        stored.set(sourceFilename, (JSON.parse(stdout) as { text: string }).text.trim())
      }
      const textOf = (name: string) => readFileSync(join(folder, name), 'utf8').trim()
      for (const [name, text] of stored) expect([name, text]).toEqual([name, textOf(name)])
      expect([...new Set(files().map(textOf))].sort()).toEqual([...stored.values()].sort())
      expect(await syncJson(sandbox, '--yes')).toMatchObject({ added: 0, changed: 0, renamed: 0, deleted: 0 })
    }
  },
)
