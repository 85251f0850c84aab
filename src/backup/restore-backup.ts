import {
  copyFileSync,
  createWriteStream,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createFolder } from '../base/folder.ts'
import { WbError } from '../contract/errors.ts'
import { acquireServerLock } from '../locks/server-lock.ts'
import { checkStore, installStore, isNewStore, isStoreInUse } from '../storage/open.ts'
import type { StoreLocation } from '../storage/storage-driver.ts'
import { type Manifest, readBackup, storeName } from './backup-file.ts'
import { isDamaged, syncFile } from './create-backup.ts'
import { damagedBackup } from './tar.ts'

export interface RestoreOptions {
  readonly dataDir: string
  readonly path: string
  /** Returns the location of the store that the configuration in a folder declares, for a data directory. */
  readonly locate: (folder: string) => StoreLocation
  /** Time for the name of the folder to which the current files are moved. */
  readonly restoredAt: string
  /** Called after the backup was checked, if the data directory contains files. Throws to cancel. */
  readonly confirm: (manifest: Manifest) => Promise<void>
  readonly signal: AbortSignal
}

export interface RestoredDataDir {
  readonly manifest: Manifest
  /** Path of the store. */
  readonly store: string
  /** Folder with the earlier files of the data directory; undefined if it was empty. */
  readonly kept: string | undefined
}

/** Names in a data directory that do not count as its content, and that stay where they are. */
const ignoredName = /^(?:serve\.(?:lock(?:-journal)?|json)|\.restore-.*|before-restore-.*)$/

/**
 * Restores a backup to a data directory. Checks the whole backup and its store before it changes anything. Moves the files
 * that are in the data directory to a folder in it, and deletes nothing. If the process is killed while files are moved, the
 * store is missing, so Workbase refuses to start until the backup is restored again.
 *
 * @throws conflict               a server or another process uses the data directory
 * @throws archive_damaged        the backup is truncated or changed
 * @throws archive_not_supported  the file is not a backup, or a newer version wrote it
 * @throws validation_error       the configuration in the backup is invalid on this machine
 */
export async function restoreBackup(options: RestoreOptions): Promise<RestoredDataDir> {
  const { dataDir, path, locate, restoredAt, confirm, signal } = options
  createFolder(dataDir)
  const locked = acquireServerLock(dataDir)
  if (!('lock' in locked)) throw dataDirInUse(dataDir, locked.heldBy?.pid)
  try {
    for (const name of readdirSync(dataDir))
      if (name.startsWith('.restore-')) rmSync(join(dataDir, name), { recursive: true, force: true })
    const folder = mkdtempSync(join(dataDir, '.restore-'))
    try {
      const manifest = await unpack(path, folder, signal)
      await requireSoundStore(join(folder, storeName))
      const location = locate(folder)
      const isElsewhere = dirname(location.path) !== dataDir
      if (isElsewhere && !(await isNewStore(location)))
        throw new WbError(
          'conflict',
          `the configuration puts the store at ${location.path}, but another store already exists there`,
          {
            hint: 'Move that store away, or change controlPlane.path, then restore again.',
          },
        )
      const current = readdirSync(dataDir).filter(name => !ignoredName.test(name))
      if (current.length > 0) await confirm(manifest)
      if (await isStoreInUse(location)) throw dataDirInUse(dataDir)
      const kept =
        current.length > 0 ? join(dataDir, `before-restore-${restoredAt.replaceAll(':', '-')}`) : undefined
      await install({ folder, dataDir, location, current, kept })
      return { manifest, store: location.path, kept }
    } finally {
      rmSync(folder, { recursive: true, force: true })
    }
  } finally {
    locked.lock.release()
  }
}

async function unpack(path: string, folder: string, signal: AbortSignal): Promise<Manifest> {
  return readBackup(path, async ({ name, mode, content }) => {
    const target = join(folder, ...name.split('/'))
    createFolder(dirname(target))
    // Only this user can read a restored file, unless the mode is wider because the user set it so.
    await pipeline(Readable.from(content), createWriteStream(target, { flags: 'wx', mode }), { signal })
    if (mode & 0o200) syncFile(target)
  })
}

async function requireSoundStore(path: string): Promise<void> {
  const report = await checkStore({ driver: 'sqlite', path })
  if (!report || isDamaged(report)) throw damagedBackup('its store is damaged')
  if (report.schema > report.known)
    throw new WbError('archive_not_supported', 'the backup was created by a newer version of Workbase')
}

interface Installation {
  /** Folder with the unpacked files. */
  readonly folder: string
  readonly dataDir: string
  readonly location: StoreLocation
  /** Names in the data directory to move away. */
  readonly current: readonly string[]
  readonly kept: string | undefined
}

/** Moves files in an order in which a store without its marker never exists, and the new store appears last. */
async function install({ folder, dataDir, location, current, kept }: Installation): Promise<void> {
  const store = basename(location.path)
  const marker = `${store}.id`
  if (kept !== undefined) {
    mkdirSync(kept, { mode: 0o700 })
    const move = (name: string) => renameSync(join(dataDir, name), join(kept, name))
    if (current.includes(store)) move(store)
    for (const name of current) if (name !== store && name !== marker) move(name)
    if (current.includes(marker)) copyFileSync(join(dataDir, marker), join(kept, marker))
  }
  for (const name of readdirSync(folder))
    if (!name.startsWith(storeName)) renameSync(join(folder, name), join(dataDir, name))
  await installStore(join(folder, storeName), location)
}

function dataDirInUse(dataDir: string, pid?: number): WbError {
  return pid === undefined
    ? new WbError('conflict', `${dataDir} is used by another process`, {
        hint: 'Wait until all wb commands that use it have ended, and stop wb serve.',
      })
    : new WbError('conflict', `${dataDir} is used by wb serve`, { hint: `Stop it first: kill ${pid}` })
}
