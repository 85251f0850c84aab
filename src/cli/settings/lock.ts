import { accessSync, constants } from 'node:fs'
import { dirname } from 'node:path'
import { TimedOut } from '../../base/deadline.ts'
import { shellWord } from '../../base/shell-word.ts'
import { Unreachable } from '../../client/unreachable.ts'
import { UsageError } from '../faults.ts'
import { alone } from '../local.ts'

/** A lock of the settings folder, and what it keeps, in words. */
interface Lock {
  readonly path: string
  readonly what: string
}

/**
 * Do some work alone among all commands that use the same lock.
 *
 * @param signal  ends the wait
 * @throws UsageError   something that is no lock lies in its place, or it cannot be opened
 * @throws Unreachable  another command holds it and does not go on
 */
export async function aloneWith<T>(
  { path, what }: Lock,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await alone(path, signal, work)
  } catch (error) {
    const { name, message } = error as Error
    if (name === 'NotALock') throw new UsageError(message, [`rm -r ${shellWord(path)}`])
    if (name === 'LockRefused') throw new UsageError(message, [opening(path)])
    if (!(error instanceof TimedOut)) throw error
    const hint = `End it; it has ${path} open.`
    throw new Unreachable(`another command holds ${what} and does not go on`, hint, { cause: error })
  }
}

/** The line that lets a lock be opened again; the file itself holds nothing. */
function opening(path: string): string {
  const folder = dirname(path)
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
    return `rm -f ${shellWord(path)}`
  } catch {
    return `chmod u+rwx ${shellWord(folder)}`
  }
}
