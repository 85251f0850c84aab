import { closeSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { TimedOut } from '../base/deadline.ts'
import { createFolder } from '../base/folder.ts'
import { isBusy } from '../storage/sqlite/connection.ts'
import Database from '../storage/sqlite/driver.ts'

/** Error for a file that is not a lock file. Callers check the `name` of the error. */
class NotALock extends Error {
  override readonly name = 'NotALock'

  constructor(path: string, options?: ErrorOptions) {
    super(`${path} is not a lock file`, options)
  }
}

/** Error for a lock file that cannot be created or opened. Callers check the `name` of the error. */
class LockUnavailable extends Error {
  override readonly name = 'LockUnavailable'

  constructor(path: string, cause: unknown) {
    const code = cause instanceof Error && 'code' in cause ? ` (${cause.code})` : ''
    super(`${path} cannot be opened${code}`, { cause })
  }
}

/**
 * Acquires an exclusive lock on a file. Uses an exclusive transaction on a SQLite file in rollback-journal mode. The
 * operating system releases the lock when the process ends, even after a crash. Never open the file in another way in
 * this process, because closing any descriptor of a file releases all POSIX locks on it.
 *
 * @param timeoutMs  how long to wait for another process; the wait blocks this thread
 * @returns the lock, which `close` releases; undefined if another process holds the lock
 * @throws NotALock     the path is not a lock file
 * @throws SqliteError  the file cannot be created or written
 * @see https://www.sqlite.org/lockingv3.html
 */
export function acquireExclusiveLock(path: string, timeoutMs: number): Database.Database | undefined {
  createFolder(dirname(path))
  // Opening a named pipe would block until another process opens it.
  if (statSync(path, { throwIfNoEntry: false })?.isFile() === false) throw new NotALock(path)
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

const retryIntervalMs = 25
/** Maximum number of attempts. Together, they take half a minute. */
const attemptsMax = 1_200

/**
 * Runs a task while no other process runs a task with the same lock file.
 *
 * @param signal  cancels the wait
 * @throws NotALock         the path is not a lock file
 * @throws LockUnavailable  the lock file cannot be created or opened
 * @throws TimedOut         another process has held the lock for half a minute, for example because it is suspended
 */
export async function runExclusively<T>(
  path: string,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const lock = tryAcquire(path)
    if (lock)
      try {
        return await work()
      } finally {
        lock.close()
      }
    await wait(retryIntervalMs, undefined, { signal })
  }
  throw new TimedOut(attemptsMax * retryIntervalMs)
}

function tryAcquire(path: string): Database.Database | undefined {
  try {
    return acquireExclusiveLock(path, 0)
  } catch (error) {
    throw error instanceof NotALock ? error : new LockUnavailable(path, error)
  }
}
