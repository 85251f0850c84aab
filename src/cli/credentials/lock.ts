import { join } from 'node:path'
import { aloneWith } from '../settings/lock.ts'
import type { Profile } from '../settings/profile.ts'

/**
 * Work on the logins of this person, alone among all commands: to renew one, to keep one, to forget one.
 *
 * @throws UsageError, Unreachable  see `aloneWith`
 */
export function aloneWithLogins<T>(
  { settingsDir }: Pick<Profile, 'settingsDir'>,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  return aloneWith({ path: join(settingsDir, 'refresh.lock'), what: 'the logins' }, signal, work)
}
