import { join } from 'node:path'
import type { Profile } from '../settings/profile.ts'
import { withLock } from '../settings/with-lock.ts'

/**
 * Runs work on the stored logins while no other command does.
 *
 * @throws UsageError, Unreachable  see `withLock`
 */
export function withLoginsLock<T>(
  { settingsDir }: Pick<Profile, 'settingsDir'>,
  signal: AbortSignal,
  work: () => Promise<T>,
): Promise<T> {
  return withLock({ path: join(settingsDir, 'refresh.lock'), what: 'the logins' }, signal, work)
}
