import { join } from 'node:path'
import { TimedOut } from '../../base/deadline.ts'
import { Unreachable } from '../../client/unreachable.ts'
import { UsageError } from '../faults.ts'
import { alone } from '../local.ts'
import type { Profile } from '../profile.ts'
import { shellWord } from '../shell-word.ts'

/**
 * Work on the logins of this person, alone among all commands: to renew one, to keep one, to forget one.
 *
 * @throws UsageError   something that is no lock lies in its place
 * @throws Unreachable  another command holds them and does not go on
 */
export async function aloneWithLogins<T>(
  { settingsDir }: Pick<Profile, 'settingsDir'>,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  const path = join(settingsDir, 'refresh.lock')
  try {
    return await alone(path, signal, work)
  } catch (error) {
    if (error instanceof Error && error.name === 'NotALock')
      throw new UsageError(error.message, [`rm -r ${shellWord(path)}`])
    if (!(error instanceof TimedOut)) throw error
    const hint = `End it; it has ${path} open.`
    throw new Unreachable('another command holds the logins and does not go on', hint, { cause: error })
  }
}
