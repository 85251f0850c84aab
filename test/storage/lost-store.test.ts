import { execFileSync } from 'node:child_process'
import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { beforeAll, describe, expect, test } from 'vitest'
import { sha256 } from '../../src/base/id.ts'
import { openEmbeddedStore } from '../../src/storage/open.ts'
import { checkSqliteStore } from '../../src/storage/sqlite/check.ts'
import Database from '../../src/storage/sqlite/driver.ts'
import { findLogDamage } from '../../src/storage/sqlite/log-damage.ts'
import { tables } from '../../src/storage/tables.ts'
import { scratchPath } from './scratch.ts'

const fixtures = join(import.meta.dirname, '..', 'fixtures', 'store')
const suffixes = ['', '-wal', '-shm', '.id'] as const
const workspace = { workspaceId: 'w', name: 'one', createdAt: '2026-01-01T00:00:00.000Z' }
const setting = (n: number) => ({ name: `setting${n}`, value: 'v'.repeat(3_000) })

type Store = Awaited<ReturnType<typeof openEmbeddedStore>>

async function write(store: Store, from: number, count: number): Promise<void> {
  for (let n = from; n < from + count; n++)
    await store.rows.atomic([{ op: 'insert', table: tables.settings, row: setting(n) }])
}

/** Opens a store, returns its number of settings, and closes it. */
async function settingsOf(path: string, dataDir?: string): Promise<number> {
  const store = await openEmbeddedStore({ path, dataDir })
  let count = 0
  while (await store.rows.get(tables.settings, [`setting${count}`])) count++
  await store.close()
  return count
}

/** Returns the bytes of the files of a store, by suffix. */
type Image = ReadonlyMap<string, Buffer>

let images: { readonly closed: Image; readonly crashed: Image }

beforeAll(async () => {
  const path = join(mkdtempSync(join(tmpdir(), 'workbase-store-')), 'workbase.db')
  const store = await openEmbeddedStore({ path })
  await store.rows.atomic([{ op: 'insert', table: tables.workspaces, row: workspace }])
  await write(store, 0, 3)
  await store.close()
  const closed = imageOf(path)
  const again = await openEmbeddedStore({ path })
  await write(again, 3, 17)
  images = { closed, crashed: imageOf(path) }
  await again.close()
  rmSync(dirname(path), { recursive: true })
})

function imageOf(path: string): Image {
  const left = suffixes.filter(suffix => existsSync(path + suffix))
  return new Map(left.map(suffix => [suffix, readFileSync(path + suffix)]))
}

function placed(image: Image): string {
  // As on macOS, where the path of the data directory has a space.
  const folder = join(dirname(scratchPath()), 'a folder')
  mkdirSync(folder)
  const path = join(folder, 'workbase.db')
  for (const [suffix, bytes] of image) writeFileSync(path + suffix, bytes, { mode: 0o600 })
  return path
}

/** A closed store with a workspace and 3 settings. */
const closedStore = () => placed(images.closed)

/** A store with 20 settings as a killed process leaves it, with 17 of them only in the log. */
const crashedStore = () => placed(images.crashed)

function filesOf(path: string): Record<string, string> {
  const folder = dirname(path)
  return Object.fromEntries(
    readdirSync(folder)
      .sort()
      .map(name => [name, sha256(readFileSync(join(folder, name), 'latin1'))]),
  )
}

interface Refusal {
  readonly code: string
  readonly message: string
  readonly hint: string
}

/** Returns the error of opening a store, and checks that no file changes and `wb doctor --deep` reports it too. */
async function refusalOf(path: string, dataDir?: string): Promise<Refusal> {
  const before = filesOf(path)
  const refusal = await settingsOf(path, dataDir).then(
    count => ({ code: `opened with ${count} settings`, message: '', hint: '' }),
    (error: Refusal) => error,
  )
  expect(filesOf(path)).toEqual(before)
  expect(found(path, dataDir)).toContain(refusal.message)
  // Reading a closed store leaves an empty log.
  expect(filesOf(path)).toMatchObject(before)
  return refusal
}

/** Returns the findings of `wb doctor --deep`. */
function found(path: string, dataDir?: string): string {
  try {
    const wrong = checkSqliteStore(path, dataDir)!.checks.filter(({ count }) => count > 0)
    return wrong.map(({ check, examples }) => `${check}: ${examples.join(', ')}`).join('; ')
  } catch (error) {
    return (error as Error).message
  }
}

/** Returns the command lines of a hint. */
function linesOf({ hint }: Refusal) {
  return {
    restore: /: (mv .*? && cp -a BACKUP .*?)(?:\. To |$)/.exec(hint)?.[1],
    startEmpty: /To start with an empty store instead: (rm .*)$/.exec(hint)?.[1],
    useOther: /To use the current store instead: (rm .*)$/.exec(hint)?.[1],
    goOn: /To continue without those changes instead: (rm .*)$/.exec(hint)?.[1],
  }
}

const unavailable = (message: string) => ({
  code: 'control_plane_unavailable',
  message: expect.stringContaining(message),
})

describe('a store that held data', () => {
  test.each([
    ['missing', 'its marker', ['.id']],
    ['missing', 'its log', ['-wal']],
    ['missing', 'the index of its log', ['-shm']],
    ['empty', 'its marker', ['.id']],
    ['empty', 'its log', ['-wal']],
  ])(
    'and is %s is rejected because of %s, with instructions to restore a backup [security rule 20]',
    async (how, _, kept) => {
      const path = crashedStore()
      for (const suffix of suffixes) if (!kept.includes(suffix)) rmSync(path + suffix)
      if (how === 'empty') writeFileSync(path, '')
      const refusal = await refusalOf(path)
      expect(refusal).toMatchObject(unavailable(`workbase.db is ${how}`))
      expect(refusal.message).toMatch(/restore your backup$/)
      // Each command of the hint does what it describes.
      const { restore, startEmpty } = linesOf(refusal)
      execFileSync('sh', ['-c', startEmpty!])
      expect(await settingsOf(path)).toBe(0)
      const backup = dirname(crashedStore())
      execFileSync('sh', ['-c', restore!.replace('BACKUP', `"${backup}"`)])
      expect(await settingsOf(path)).toBe(20)
      expect(existsSync(`${dirname(path)}.old`)).toBe(true)
    },
  )

  test('and is missing is rejected, and the message names a copy from before an upgrade, which can be restored', async () => {
    const path = scratchPath()
    writeFileSync(path, gunzipSync(readFileSync(join(fixtures, 'v1.db.gz'))))
    await settingsOf(path)
    const copy = readdirSync(dirname(path)).find(name => name.includes('.before-'))!
    rmSync(`${path}.id`)
    rmSync(path)
    const refusal = await refusalOf(path)
    expect(refusal.message).toContain(`restore your backup, or ${copy}, which is a copy`)
    copyFileSync(join(dirname(path), copy), path)
    const store = await openEmbeddedStore({ path })
    expect(await store.rows.get(tables.workspaces, ['w'])).toBeDefined()
    await store.close()
    rmSync(path)
    execFileSync('sh', ['-c', linesOf(await refusalOf(path)).startEmpty!])
    expect(await settingsOf(path)).toBe(0)
  })

  test('on a disk that is missing is rejected, because the data directory records it', async () => {
    const dataDir = dirname(scratchPath())
    const path = scratchPath()
    await settingsOf(path, dataDir)
    renameSync(dirname(path), `${dirname(path)}.unmounted`)
    mkdirSync(dirname(path))
    expect(await refusalOf(path, dataDir)).toMatchObject(unavailable('is missing'))
    // Another path is another store.
    expect(await settingsOf(scratchPath(), dataDir)).toBe(0)
    rmSync(dirname(path), { recursive: true })
    renameSync(`${dirname(path)}.unmounted`, dirname(path))
    expect(await settingsOf(path, dataDir)).toBe(0)
  })

  test.each<[how: string, put: (path: string) => unknown, message: string]>([
    ['an empty database', path => new Database(path).exec('VACUUM').close(), 'workbase.db is empty'],
    [
      'the empty store of a version that knows no marker',
      async path => {
        await settingsOf(path)
        rmSync(`${path}.id`)
        const database = new Database(path)
        database.exec(`DELETE FROM settings WHERE name = 'store-id'`)
        database.close()
      },
      'workbase.db is empty',
    ],
    [
      'another store',
      async path => {
        const store = await openEmbeddedStore({ path })
        await store.rows.atomic([{ op: 'insert', table: tables.workspaces, row: workspace }])
        await store.close()
      },
      'workbase.db is a different store',
    ],
    [
      'a database of another program',
      path => new Database(path).exec('CREATE TABLE places (url TEXT)').close(),
      'workbase.db is a SQLite database of another program',
    ],
    [
      'a database of another program, of the same version number',
      path =>
        new Database(path)
          .exec('CREATE TABLE places (url TEXT); PRAGMA user_version = 3; PRAGMA journal_mode = WAL')
          .close(),
      'workbase.db is a SQLite database of another program',
    ],
  ])('and has %s in its place is rejected', async (_, put, message) => {
    const path = closedStore()
    const other = scratchPath()
    await put(other)
    copyFileSync(other, path)
    const refusal = await refusalOf(path)
    expect(refusal).toMatchObject(unavailable(message))
    const { useOther } = linesOf(refusal)
    if (useOther === undefined) return
    execFileSync('sh', ['-c', useOther])
    expect(await settingsOf(path)).toBe(0)
  })

  test('and was replaced by a file that is not a database is rejected', async () => {
    const path = closedStore()
    writeFileSync(path, 'garbage '.repeat(2_000))
    const refused = settingsOf(path)
    await expect(refused).rejects.toMatchObject(unavailable('the store is not a database of this runtime'))
    expect(found(path)).toContain('damage in the file: file is not a database')
  })

  test('is not created in a database of another program', async () => {
    const path = scratchPath()
    new Database(path).exec('CREATE TABLE places (url TEXT)').close()
    expect(await refusalOf(path)).toMatchObject(unavailable('of another program'))
  })

  test.each([
    [1, 'workbase.db is empty'],
    [100, 'the store is damaged'],
    [4_096, 'the store is damaged'],
    [40_000, 'the store is damaged'],
  ])('and was truncated to %i bytes is rejected', async (bytes, message) => {
    const path = closedStore()
    truncateSync(path, bytes)
    await expect(settingsOf(path)).rejects.toMatchObject(unavailable(message))
    expect(found(path)).toMatch(/is empty|^damage in the file: database disk image is malformed$/)
  })
})

describe('a store is opened', () => {
  test('without a marker of an earlier version, and gets one', async () => {
    const path = closedStore()
    const marker = readFileSync(`${path}.id`, 'utf8')
    expect(marker).toMatch(/^[0-9a-f]{32}\n/)
    expect(statSync(`${path}.id`).mode & 0o777).toBe(0o600)
    rmSync(`${path}.id`)
    expect(await settingsOf(path)).toBe(3)
    expect(readFileSync(`${path}.id`, 'utf8')).toBe(marker)
  })

  test('with an unreadable marker, which is replaced', async () => {
    const path = closedStore()
    const marker = readFileSync(`${path}.id`, 'utf8')
    writeFileSync(`${path}.id`, '')
    expect(await settingsOf(path)).toBe(3)
    expect(readFileSync(`${path}.id`, 'utf8')).toBe(marker)
  })

  test('from a backup of the whole directory, and from a copy of the file', async () => {
    const path = closedStore()
    const [folder, backup] = [dirname(path), scratchPath()]
    copyFileSync(path, backup)
    execFileSync('cp', ['-a', folder, `${backup}.d`])
    const store = await openEmbeddedStore({ path })
    await write(store, 3, 4)
    await store.close()
    copyFileSync(backup, path)
    expect(await settingsOf(path)).toBe(3)
    rmSync(folder, { recursive: true })
    execFileSync('cp', ['-a', `${backup}.d`, folder])
    expect(await settingsOf(path)).toBe(3)
  })

  test('from a backup that predates store IDs', async () => {
    const path = closedStore()
    const marker = readFileSync(`${path}.id`, 'utf8')
    const database = new Database(path)
    database.exec(`DELETE FROM settings WHERE name = 'store-id'`)
    database.close()
    expect(await settingsOf(path)).toBe(3)
    expect(readFileSync(`${path}.id`, 'utf8')).toBe(marker)
    expect(await settingsOf(path)).toBe(3)
  })

  test('as a new store if a process was killed while it created one', async () => {
    const path = scratchPath()
    writeFileSync(path, '')
    writeFileSync(`${path}-wal`, '')
    expect(await settingsOf(path)).toBe(0)
  })

  test('twice in one process', async () => {
    const path = closedStore()
    const [one, other] = [await openEmbeddedStore({ path }), await openEmbeddedStore({ path })]
    await write(one, 3, 1)
    await other.close()
    await one.close()
    expect(await settingsOf(path)).toBe(4)
  })
})

/** Frames of the log, with 4,096 bytes per page. */
const frameBytes = 4_120
const frameAt = (frame: number) => 32 + frame * frameBytes

function flip(path: string, at: number): void {
  const bytes = readFileSync(path)
  bytes[at]! ^= 0x10
  writeFileSync(path, bytes)
}

describe('a log that has lost committed changes', () => {
  test.each<[how: string, damage: (path: string) => unknown, lost: string]>([
    ['a page in its middle', path => flip(`${path}-wal`, frameAt(9) + 500), 'log is damaged'],
    ['the number of a page', path => flip(`${path}-wal`, frameAt(9) + 3), 'is damaged'],
    ['the salt of a frame', path => flip(`${path}-wal`, frameAt(9) + 9), 'is damaged'],
    ['the checksum of a frame', path => flip(`${path}-wal`, frameAt(9) + 20), 'is damaged'],
    ['its header', path => flip(`${path}-wal`, 2), 'committed to it cannot be read'],
    ['the salt of its header', path => flip(`${path}-wal`, 17), 'committed to it cannot be read'],
  ])('because of damage to %s is rejected, with and without its index', async (_, damage) => {
    const path = crashedStore()
    damage(path)
    expect(await refusalOf(path)).toMatchObject(unavailable('workbase.db-wal is damaged: '))
    rmSync(`${path}-shm`)
    expect(await refusalOf(path)).toMatchObject(unavailable('workbase.db-wal is damaged: '))
  })

  test('because of damage to the last commit is rejected, because the index counts it', async () => {
    const path = crashedStore()
    flip(`${path}-wal`, statSync(`${path}-wal`).size - 9)
    expect(await refusalOf(path)).toMatchObject(unavailable('workbase.db-wal is damaged: '))
  })

  test.each<[how: string, lose: (log: string) => unknown, message: string]>([
    ['cut', log => truncateSync(log, frameAt(9)), 'workbase.db-wal is damaged: '],
    ['emptied', log => truncateSync(log, 0), 'workbase.db-wal is missing'],
    ['deleted', log => rmSync(log), 'workbase.db-wal is missing'],
  ])(
    'because it was %s is rejected, because the index counts the missing frames',
    async (_, lose, message) => {
      const path = crashedStore()
      lose(`${path}-wal`)
      expect(await refusalOf(path)).toMatchObject(unavailable(message))
    },
  )

  test('can be discarded with the command in the hint', async () => {
    const path = crashedStore()
    flip(`${path}-wal`, frameAt(9) + 500)
    execFileSync('sh', ['-c', linesOf(await refusalOf(path)).goOn!])
    const left = await settingsOf(path)
    expect(left).toBeGreaterThan(0)
    expect(left).toBeLessThan(20)
  })

  test('of a truncated store is reported, if the log does not contain the missing pages', async () => {
    const path = crashedStore()
    const whole = readFileSync(path)
    truncateSync(path, 4_096 * 20)
    expect(await refusalOf(path)).toMatchObject(unavailable('workbase.db is damaged: the file was truncated'))
    writeFileSync(path, whole)
    expect(await settingsOf(path)).toBe(20)
  })

  test('is found through a link to the store', async () => {
    const path = crashedStore()
    const link = scratchPath()
    symlinkSync(path, link)
    flip(`${path}-wal`, frameAt(9) + 500)
    expect(await refusalOf(link)).toMatchObject(unavailable('workbase.db-wal is damaged: '))
  })
})

describe('a log without a lost commit', () => {
  test.each<[how: string, leave: (log: string) => unknown]>([
    ['whole', () => {}],
    ['without its index', log => rmSync(log.replace(/-wal$/, '-shm'))],
    ['with an index that is caught in a change', log => flip(log.replace(/-wal$/, '-shm'), 16)],
    ['with half a frame at its end', log => appendFileSync(log, readFileSync(log).subarray(32, 2_000))],
    [
      'with frames of an earlier round behind its own',
      log => {
        const frame = readFileSync(log).subarray(32, 32 + frameBytes)
        frame.fill(0x11, 8, 16)
        for (let n = 0; n < 5; n++) appendFileSync(log, frame)
      },
    ],
    [
      'with frames of a change that was undone behind its own',
      log => {
        // These frames match the current salt and each other, but not the previous frame, and do not end a commit.
        const bytes = readFileSync(log)
        const open = bytes.subarray(frameAt(1)).subarray(0, frameBytes)
        open.fill(0, 4, 8)
        appendFileSync(log, open)
      },
    ],
  ])('is read: %s', async (_, leave) => {
    const path = crashedStore()
    leave(`${path}-wal`)
    expect(findLogDamage(path)).toBeUndefined()
    expect(await settingsOf(path)).toBe(20)
  })

  test('is read if the database already has all of its changes', async () => {
    const live = crashedStore()
    const store = await openEmbeddedStore({ path: live })
    const database = new Database(live)
    database.pragma('wal_checkpoint(PASSIVE)')
    const path = placed(imageOf(live))
    database.close()
    await store.close()
    rmSync(`${path}-wal`)
    expect(await settingsOf(path)).toBe(20)
  })
})
