import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { describe, expect, test, vi } from 'vitest'
import { type Sandbox, sandboxFactory } from './sandbox.ts'

vi.setConfig({ testTimeout: 60_000 })

/** A data directory with documents, a configuration, a provider key, a secret and other files. */
const filled = sandboxFactory(async ({ wb, home, dataDir }) => {
  mkdirSync(join(home, 'docs'))
  writeFileSync(join(home, 'docs', 'keys.md'), '# Keys\n\nKeys are rotated every month.\n')
  writeFileSync(join(home, 'docs', 'roles.md'), '# Roles\n\nRoles collect scopes.\n')
  const created = await wb(['kb', 'ingest', 'handbook', join(home, 'docs'), '--create', '--no-wait'])
  expect(created.status, created.stderr).toBe(0)
  writeFileSync(join(dataDir, 'workbase.yaml'), 'version: 1\n')
  writeFileSync(join(dataDir, '.env'), 'OPENAI_API_KEY=sk-planted\n', { mode: 0o600 })
  mkdirSync(join(dataDir, 'secrets', 'demo'), { recursive: true })
  writeFileSync(join(dataDir, 'secrets', 'demo', 'token'), 'planted', { mode: 0o400 })
  writeFileSync(join(dataDir, 'notes.txt'), 'mine')
  symlinkSync(home, join(dataDir, 'secrets', 'linked'))
})

const search = async ({ wb }: Sandbox, ...flags: string[]) =>
  (await wb(['kb', 'search', 'handbook', 'when are keys rotated', '--no-wait', ...flags])).stdout
const backUp = async (sandbox: Sandbox, ...args: string[]) => {
  const file = join(sandbox.home, 'backup.tar.gz')
  return { file, ...(await sandbox.wb(['backup', file, ...args])) }
}

/** Returns true if two compressed files have the same content: some bits, such as those of distances in repeated text, have no effect. */
function isSameContent(left: Buffer, right: Buffer): boolean {
  try {
    return gunzipSync(left).equals(gunzipSync(right))
  } catch {
    return false
  }
}

describe.each(['in process', 'with a server'])('wb backup, %s', way => {
  test('writes a private file that wb restore and tar can read', async () => {
    const sandbox = await filled()
    if (way === 'with a server') await sandbox.serve()
    const found = await search(sandbox)
    const { file, status, stdout, stderr } = await backUp(sandbox)
    expect({ status, stdout }, stderr).toEqual({ status: 0, stdout: `${file}\n` })
    expect(stderr).toMatch(/contains: workbase\.db, \.env, secrets \(1 file\), workbase\.yaml\n/)
    expect(stderr).toContain('not in the backup: notes.txt, secrets/linked\n')
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(readdirSync(sandbox.home).filter(name => name.startsWith('.wb'))).toEqual([])
    expect(execFileSync('tar', ['-tzf', file], { encoding: 'utf8' }).trim().split('\n')).toEqual([
      'workbase.db',
      '.env',
      'secrets/demo/token',
      'workbase.yaml',
      'backup.json',
    ])
    const fresh = join(sandbox.home, 'fresh')
    const restored = await sandbox.wb(['restore', file, '--data-dir', fresh])
    expect(restored.status, restored.stderr).toBe(0)
    expect(await search(sandbox, '--data-dir', fresh)).toBe(found)
    expect(readFileSync(join(fresh, 'secrets', 'demo', 'token'), 'utf8')).toBe('planted')
    expect(statSync(join(fresh, 'secrets', 'demo', 'token')).mode & 0o777).toBe(0o400)
    expect(statSync(join(fresh, 'workbase.db')).mode & 0o777).toBe(0o600)
    expect(readFileSync(join(fresh, '.env'), 'utf8')).toBe('OPENAI_API_KEY=sk-planted\n')
    expect(readdirSync(fresh).filter(name => name.includes('restore'))).toEqual([])
  })
})

test('a backup does not replace a file without --force', async () => {
  const sandbox = await filled()
  await backUp(sandbox)
  expect(await backUp(sandbox)).toMatchObject({ status: 2, stderr: expect.stringContaining('--force') })
  expect(await backUp(sandbox, '--force')).toMatchObject({ status: 0 })
})

test('names a target that cannot be written', async () => {
  const sandbox = await filled()
  expect(await sandbox.wb(['backup', sandbox.home, '--force'])).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('is a folder'),
  })
  expect(await sandbox.wb(['backup', join(sandbox.home, 'missing', 'workbase.tar.gz')])).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('does not exist'),
  })
})

test('a damaged store is not backed up, and a missing one is reported', async () => {
  const sandbox = await filled()
  truncateSync(
    join(sandbox.dataDir, 'workbase.db'),
    statSync(join(sandbox.dataDir, 'workbase.db')).size - 8_192,
  )
  const { file, status } = await backUp(sandbox)
  expect(status).toBe(6)
  expect(existsSync(file)).toBe(false)
  const empty = await sandbox.wb(['backup', file, '--data-dir', join(sandbox.home, 'nowhere')])
  expect(empty).toMatchObject({ status: 1, stderr: expect.stringContaining('contains no data yet') })
})

describe('wb restore', () => {
  test('keeps the current files in a folder, after a confirmation', async () => {
    const sandbox = await filled()
    const { file } = await backUp(sandbox)
    await sandbox.wb(['kb', 'create', 'later'])
    const declined = await sandbox.wb(['restore', file])
    expect(declined).toMatchObject({ status: 2, stderr: expect.stringContaining('--yes') })
    expect((await sandbox.wb(['kb', 'list'])).stdout).toContain('later')
    const { status, stdout } = await sandbox.wb(['restore', file, '--yes', '--json'])
    expect(status).toBe(0)
    const { kept } = JSON.parse(stdout) as { kept: string }
    expect(readdirSync(kept).sort()).toEqual(
      expect.arrayContaining([
        '.env',
        'notes.txt',
        'secrets',
        'workbase.db',
        'workbase.db.id',
        'workbase.yaml',
      ]),
    )
    expect((await sandbox.wb(['kb', 'list'])).stdout).not.toContain('later')
    expect((await sandbox.wb(['kb', 'list', '--data-dir', kept])).stdout).toContain('later')
    expect((await sandbox.wb(['doctor', '--deep', '--json'])).status).toBe(0)
  })

  test('replaces a store that is damaged or missing', async () => {
    const sandbox = await filled()
    const found = await search(sandbox)
    const { file } = await backUp(sandbox)
    const store = join(sandbox.dataDir, 'workbase.db')
    for (const damage of [() => truncateSync(store, 8_192), () => rmSync(store)]) {
      damage()
      expect((await sandbox.wb(['kb', 'list'])).status).toBe(6)
      expect(await sandbox.wb(['restore', file, '--yes'])).toMatchObject({ status: 0 })
      expect(await search(sandbox)).toBe(found)
    }
  })

  test('refuses while a server runs', async () => {
    const sandbox = await filled()
    const { file } = await backUp(sandbox)
    const server = await sandbox.serve()
    const refused = await sandbox.wb(['restore', file, '--yes', '--local'])
    expect(refused).toMatchObject({ status: 5, stderr: expect.stringContaining(`kill ${server.pid}`) })
  })

  test('refuses a backup that is truncated or changed at any place, and changes nothing', async () => {
    const sandbox = await filled()
    const { file } = await backUp(sandbox)
    const bytes = readFileSync(file)
    const content = () =>
      readdirSync(sandbox.dataDir)
        .filter(name => name !== 'serve.lock')
        .sort()
    const before = content()
    const places = Array.from({ length: 12 }, (_, n) => Math.floor((bytes.length * (n + 0.5)) / 12))
    for (const at of places) {
      const flipped = Buffer.from(bytes)
      flipped[at] = flipped[at]! ^ 0x10
      for (const damaged of [bytes.subarray(0, at), ...(isSameContent(flipped, bytes) ? [] : [flipped])]) {
        writeFileSync(file, damaged)
        const { status, stderr } = await sandbox.wb(['restore', file, '--yes'])
        expect(status).toBe(1)
        expect(stderr).toContain('(archive_damaged)')
      }
    }
    writeFileSync(file, bytes.subarray(0, bytes.length - 1))
    expect((await sandbox.wb(['restore', file, '--yes'])).stderr).toContain('(archive_damaged)')
    writeFileSync(file, 'some text')
    expect((await sandbox.wb(['restore', file, '--yes'])).stderr).toContain('(archive_not_supported)')
    expect(content()).toEqual(before)
  })

  test.each([
    ['with another path, even if its checksums are right', ['extra'], undefined],
    ['with a path twice', ['.env', '.env'], undefined],
    ['with a folder that is a file', ['workbase.yaml/a'], undefined],
    ['with a path that contains a control character', ['secrets/a\x1bb'], undefined],
    ['whose list of files is missing', [], '{"format":"workbase-backup","version":1}'],
  ])('refuses a backup %s', async (_, added, manifest) => {
    const sandbox = await filled()
    const { file } = await backUp(sandbox)
    const unpacked = join(sandbox.home, 'unpacked')
    mkdirSync(unpacked)
    execFileSync('tar', ['-xzf', file, '-C', unpacked])
    for (const name of added) {
      const path = join(unpacked, name)
      if (existsSync(dirname(path)) && !statSync(dirname(path)).isDirectory()) rmSync(dirname(path))
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, 'x')
    }
    if (manifest !== undefined) writeFileSync(join(unpacked, 'backup.json'), manifest)
    execFileSync('tar', [
      '-czf',
      file,
      '--format=ustar',
      '-C',
      unpacked,
      'workbase.db',
      // Without this option, tar stores a name that occurs twice as a link.
      '--hard-dereference',
      ...added,
      'backup.json',
    ])
    const refused = await sandbox.wb(['restore', file, '--data-dir', join(sandbox.home, 'fresh')])
    expect(refused).toMatchObject({ status: 1, stderr: expect.stringContaining('(archive_damaged)') })
  })
})
