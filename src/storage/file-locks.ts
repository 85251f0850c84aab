/** An exclusive lock on a file. */
export interface FileLock {
  /** Releases the lock. Has no effect on a lock that was already released. */
  close(): void
}

/**
 * Exclusive locks between the processes of a machine, on files that are used for nothing else. The operating system
 * releases a lock when its process ends, even after a crash. Never open a lock file in another way in the process that
 * has the lock, because closing any descriptor of a file releases all POSIX locks on it.
 */
export interface FileLocks {
  /**
   * Acquires the lock of a file, which is created if it is missing. Blocks this thread.
   *
   * @param timeoutMs  how long to wait for another process
   * @returns undefined if another process has the lock
   * @throws NotALock  the file has another format
   * @throws the error of the driver if the file cannot be created or written
   */
  acquire(path: string, timeoutMs: number): FileLock | undefined
  /** Returns true if a process has the lock of an existing file. Returns false if the file cannot be read. */
  isHeld(path: string): boolean
}

/** Error for a file that is not a lock file. Callers check the `name` of the error. */
export class NotALock extends Error {
  override readonly name = 'NotALock'

  constructor(path: string, options?: ErrorOptions) {
    super(`${path} is not a lock file`, options)
  }
}
