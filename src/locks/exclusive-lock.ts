import { statSync } from 'node:fs'
import { dirname } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { TimedOut } from '../base/deadline.ts'
import { createFolder } from '../base/folder.ts'
import { type FileLock, NotALock } from '../storage/file-locks.ts'
import { fileLocks } from '../storage/open.ts'

/** Error for a lock file that cannot be created or opened. Callers check the `name` of the error. */
class LockUnavailable extends Error {
  override readonly name = 'LockUnavailable'

  constructor(path: string, cause: unknown) {
    const code = cause instanceof Error && 'code' in cause ? ` (${cause.code})` : ''
    super(`${path} cannot be opened${code}`, { cause })
  }
}

/**
 * Acquires an exclusive lock on a file, and creates its folder if it is missing. See `FileLocks.acquire`.
 *
 * @param timeoutMs  how long to wait for another process; the wait blocks this thread
 * @returns the lock, which `close` releases; undefined if another process holds the lock
 * @throws NotALock  the path is not a lock file
 * @throws an error of the driver if the file cannot be created or written
 */
export function acquireExclusiveLock(path: string, timeoutMs: number): FileLock | undefined {
  createFolder(dirname(path))
  // Opening a named pipe would block until another process opens it.
  if (statSync(path, { throwIfNoEntry: false })?.isFile() === false) throw new NotALock(path)
  return fileLocks.acquire(path, timeoutMs)
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

function tryAcquire(path: string): FileLock | undefined {
  try {
    return acquireExclusiveLock(path, 0)
  } catch (error) {
    throw error instanceof NotALock ? error : new LockUnavailable(path, error)
  }
}
