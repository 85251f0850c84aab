import { accessSync, constants } from 'node:fs'
import { dirname } from 'node:path'
import { TimedOut } from '../../base/deadline.ts'
import { shellWord } from '../../base/shell-word.ts'
import { Unreachable } from '../../client/unreachable.ts'
import { UsageError } from '../errors.ts'
import { runExclusively } from '../local.ts'

/** A lock file. */
interface Lock {
  readonly path: string
  /** Description of the protected data, for messages. */
  readonly resource: string
}

/**
 * Runs `work` while this command holds the lock.
 *
 * @param signal  aborts the wait
 * @throws UsageError   the path is not a lock file, or cannot be opened
 * @throws Unreachable  another command holds the lock for too long
 */
export async function withLock<T>(
  { path, resource }: Lock,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await runExclusively(path, signal, work)
  } catch (error) {
    const { name, message } = error as Error
    if (name === 'NotALock') throw new UsageError(message, [`rm -r ${shellWord(path)}`])
    if (name === 'LockUnavailable') throw new UsageError(message, [lockRepairCommand(path)])
    if (!(error instanceof TimedOut)) throw error
    const hint = `End the process that has ${path} open.`
    throw new Unreachable(`another command has locked ${resource} for too long`, hint, {
      cause: error,
    })
  }
}

/**
 * Returns the command to run if a lock file cannot be opened. It deletes the file, which is empty, or makes its folder
 * accessible.
 */
function lockRepairCommand(path: string): string {
  const folder = dirname(path)
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
    return `rm -f ${shellWord(path)}`
  } catch {
    return `chmod u+rwx ${shellWord(folder)}`
  }
}
