import { join } from 'node:path'
import type { Profile } from '../settings/profile.ts'
import { withLock } from '../settings/with-lock.ts'

/**
 * Work on the logins of this person, alone among all commands: to renew one, to keep one, to forget one.
 *
 * @throws UsageError, Unreachable  see `aloneWith`
 */
export function withLoginsLock<T>(
  { settingsDir }: Pick<Profile, 'settingsDir'>,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  return withLock({ path: join(settingsDir, 'refresh.lock'), what: 'the logins' }, signal, work)
}
