import { accessSync, constants } from 'node:fs'
import { dirname } from 'node:path'
import { TimedOut } from '../../base/deadline.ts'
import { shellWord } from '../../base/shell-word.ts'
import { Unreachable } from '../../client/unreachable.ts'
import { UsageError } from '../errors.ts'
import { alone } from '../local.ts'

/** A lock file, and what it protects, for messages. */
interface Lock {
  readonly path: string
  readonly what: string
}

/**
 * Runs work while no other command holds the lock.
 *
 * @param signal  aborts the wait
 * @throws UsageError   the path is not a lock file, or cannot be opened
 * @throws Unreachable  another command holds the lock for too long
 */
export async function withLock<T>(
  { path, what }: Lock,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await alone(path, signal, work)
  } catch (error) {
    const { name, message } = error as Error
    if (name === 'NotALock') throw new UsageError(message, [`rm -r ${shellWord(path)}`])
    if (name === 'LockRefused') throw new UsageError(message, [unlockCommand(path)])
    if (!(error instanceof TimedOut)) throw error
    const hint = `End the process that has ${path} open.`
    throw new Unreachable(`another command has locked ${what} and does not continue`, hint, { cause: error })
  }
}

/** Returns the command that makes a lock accessible again. The file itself is empty. */
function unlockCommand(path: string): string {
  const folder = dirname(path)
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
    return `rm -f ${shellWord(path)}`
  } catch {
    return `chmod u+rwx ${shellWord(folder)}`
  }
}
