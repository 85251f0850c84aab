import { join } from 'node:path'
import type { Profile } from '../settings/profile.ts'
import { withLock } from '../settings/with-lock.ts'

/**
 * Runs work while holding the lock of the stored logins, so that no other command changes them at the same time.
 *
 * @throws UsageError, Unreachable  see `withLock`
 */
export function withLoginsLock<T>(
  { settingsDir }: Pick<Profile, 'settingsDir'>,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  return withLock({ path: join(settingsDir, 'refresh.lock'), resource: 'the logins' }, signal, work)
}
