import { type KeychainDriver, KeychainUnavailable } from '../../keychain/keychain.ts'
import { keychainDriver } from '../credentials/keychains.ts'
import { requireEncryption } from '../settings/address.ts'
import { changeProfiles } from '../settings/change-settings.ts'
import type { Profile } from '../settings/profile.ts'
import { readProfiles, requireFreeName } from '../settings/profiles.ts'
import type { Output } from '../terminal/output.ts'
import { requireKeychain } from './save-login.ts'

/**
 * Returns the keychain for a new login. If it is unavailable, asks the user whether to use a file instead.
 *
 * @param confirm  asks a yes-or-no question; undefined if there is no terminal
 * @throws KeychainUnavailable  the user declined, or there is no terminal
 */
export async function chooseKeychain(
  profile: Profile,
  output: Output,
  confirm: ((question: string) => Promise<boolean>) | undefined,
): Promise<KeychainDriver> {
  const driver = keychainDriver(profile.keychain)
  if (driver === 'file') return driver
  try {
    await requireKeychain(profile, driver)
    return driver
  } catch (error) {
    if (!(error instanceof KeychainUnavailable) || !confirm) throw error
    output.warn(`  ! ${error.message}`)
    if (await confirm('Store the login in a file that only you can read?')) return 'file'
    throw error
  }
}

/**
 * Checks that a login can be stored for a profile.
 *
 * @throws InvalidAddress  the login would be sent unencrypted
 * @throws UsageError      the profile is new, and its name differs from that of another profile only in case
 */
export function requireStorableLogin({ name, settingsDir, url, urlSource, insecureHttp }: Profile): void {
  const stored = readProfiles(settingsDir)
  if (!stored.profiles[name]) requireFreeName(stored, name)
  if (url !== undefined && !insecureHttp) requireEncryption('a login', { url, urlSource })
}

/**
 * Stores the address from `--url` in the profile, if there is one, and `file` as the keychain if the login is stored in
 * a file.
 */
export function saveProfileRuntime(
  { name, url, urlSource, settingsDir }: Profile,
  driver: KeychainDriver | undefined,
): Promise<void> {
  return changeProfiles(settingsDir, ({ profiles }) => {
    profiles[name] = {
      ...(profiles[name] ?? { workspaces: {} }),
      ...(urlSource === '--url' && { url }),
      ...(driver === 'file' && { keychain: driver }),
    }
  })
}
