import { closeSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { TimedOut } from '../../base/deadline.ts'
import { createFolder } from '../../base/folder.ts'
import { isBusy } from './connection.ts'
import Database from './driver.ts'

/** What lies where a lock should is not made by us. Known across rooms by its name. */
class NotALock extends Error {
  override readonly name = 'NotALock'

  constructor(path: string, options?: ErrorOptions) {
    super(`${path} is not a lock file`, options)
  }
}

/** The system does not let a lock be made or opened. Known across rooms by its name. */
class LockRefused extends Error {
  override readonly name = 'LockRefused'

  constructor(path: string, cause: unknown) {
    const code = cause instanceof Error && 'code' in cause ? ` (${cause.code})` : ''
    super(`${path} cannot be opened${code}`, { cause })
  }
}

/**
 * Hold a file of one's own against all other processes: an exclusive transaction on a SQLite file in rollback-journal
 * mode. The operating system gives it up when the process dies, however it dies. Never open such a file by other means
 * in this process: closing any descriptor of a file gives up all POSIX locks on it.
 *
 * @param patienceMs  how long to wait for another, with this thread blocked
 * @returns the lock, which its `close` lets go; undefined while another process holds it
 * @throws NotALock     something else lies there
 * @throws SqliteError  the file cannot be made or written
 * @see https://www.sqlite.org/lockingv3.html
 */
export function holdExclusively(path: string, patienceMs: number): Database.Database | undefined {
  createFolder(dirname(path))
  // To open a pipe would wait for its other end.
  if (statSync(path, { throwIfNoEntry: false })?.isFile() === false) throw new NotALock(path)
  makeFile(path)
  const database = new Database(path, { timeout: patienceMs })
  try {
    database.pragma('journal_mode = DELETE')
    database.exec('BEGIN EXCLUSIVE')
    return database
  } catch (error) {
    database.close()
    if (isBusy(error)) return undefined
    throw isForeign(error) ? new NotALock(path, { cause: error }) : error
  }
}

function isForeign(error: unknown): boolean {
  return error instanceof Database.SqliteError && /^SQLITE_(?:NOTADB|CORRUPT)/.test(error.code)
}

/** Readable by its owner only, which SQLite would leave to the umask. One that is there is not opened: see above. */
function makeFile(path: string): void {
  try {
    closeSync(openSync(path, 'wx', 0o600))
  } catch {
    // It is there already, or SQLite says why it cannot be.
  }
}

const askAgainMs = 25
/** Half a minute. */
const asksMax = 1_200

/**
 * Do some work alone among all processes that use the same file.
 *
 * @param signal  ends the wait
 * @throws NotALock     something else lies there
 * @throws LockRefused  it cannot be made or opened
 * @throws TimedOut     another process has held it for half a minute, as one does that is stopped
 */
export async function alone<T>(path: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  for (let asked = 0; asked < asksMax; asked++) {
    const lock = heldNow(path)
    if (lock)
      try {
        return await work()
      } finally {
        lock.close()
      }
    await wait(askAgainMs, undefined, { signal })
  }
  throw new TimedOut(asksMax * askAgainMs)
}

function heldNow(path: string): Database.Database | undefined {
  try {
    return holdExclusively(path, 0)
  } catch (error) {
    throw error instanceof NotALock ? error : new LockRefused(path, error)
  }
}
