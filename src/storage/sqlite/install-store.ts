import { copyFileSync, existsSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { createFolder } from '../../base/folder.ts'
import type { StoreLocation } from '../storage-driver.ts'
import { isBusy } from './connection.ts'
import Database from './driver.ts'
import { findLogDamage } from './log-damage.ts'
import { readTraces, storeIdOf, writeMarkers } from './store-marker.ts'

/** Moves a copy of a store to its location, see `StorageDriver.install`. */
export function installSqliteStore(copy: string, { path, dataDir }: StoreLocation): void {
  const database = new Database(copy, { readonly: true, fileMustExist: true })
  let id: string | undefined
  try {
    id = storeIdOf(database)
  } finally {
    database.close()
  }
  createFolder(dirname(path))
  const next = `${path}.restored`
  rmSync(next, { force: true })
  moveFile(copy, next)
  if (id !== undefined) writeMarkers(readTraces(path, dataDir), id, path)
  renameSync(next, path)
}

/** Moves a file, also to another file system. */
function moveFile(from: string, to: string): void {
  try {
    renameSync(from, to)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EXDEV') throw error
    copyFileSync(from, to)
  }
}

/** Returns true if another process has a store open, see `StorageDriver.isInUse`. */
export function isSqliteStoreInUse(path: string): boolean {
  // Opening a store that has lost changes would overwrite the remains of these changes.
  if (!existsSync(path) || findLogDamage(path)) return false
  try {
    const database = new Database(path, { fileMustExist: true, timeout: 0 })
    try {
      // With this mode, the first read locks the file, which fails if another connection has it open.
      database.pragma('locking_mode = EXCLUSIVE')
      database.exec('BEGIN EXCLUSIVE; ROLLBACK')
      return false
    } finally {
      database.close()
    }
  } catch (error) {
    return isBusy(error)
  }
}
