import { closeSync, openSync } from 'node:fs'
import { type FileLocks, NotALock } from '../file-locks.ts'
import { isBusy } from './connection.ts'
import Database from './driver.ts'

/**
 * File locks by exclusive transactions on SQLite files in rollback-journal mode.
 *
 * @see https://www.sqlite.org/lockingv3.html
 */
export const sqliteFileLocks: FileLocks = {
  acquire(path, timeoutMs) {
    createLockFile(path)
    const database = new Database(path, { timeout: timeoutMs })
    try {
      database.pragma('journal_mode = DELETE')
      database.exec('BEGIN EXCLUSIVE')
      return database
    } catch (error) {
      database.close()
      if (isBusy(error)) return undefined
      throw isOtherFormat(error) ? new NotALock(path, { cause: error }) : error
    }
  },

  isHeld(path) {
    const database = openForReading(path)
    if (!database) return false
    try {
      database.prepare('SELECT 1 FROM sqlite_schema').get()
      return false
    } catch (error) {
      return isBusy(error)
    } finally {
      database.close()
    }
  },
}

function isOtherFormat(error: unknown): boolean {
  return error instanceof Database.SqliteError && /^SQLITE_(?:NOTADB|CORRUPT)/.test(error.code)
}

/**
 * Creates a lock file that only its owner can read. If SQLite created the file, the umask would determine its mode.
 * Never opens an existing file, because closing it would release its locks.
 */
function createLockFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch {
    // The file already exists, or SQLite will report why it cannot be created.
  }
}

function openForReading(path: string): Database.Database | undefined {
  try {
    return new Database(path, { readonly: true, fileMustExist: true, timeout: 0 })
  } catch {
    return undefined
  }
}
