import { join } from 'node:path'
import { systemClock } from '../../base/clock.ts'
import type { Keychain, KeychainDriver } from '../../keychain/keychain.ts'
import { openKeychain } from '../../keychain/open.ts'
import type { Profile } from '../settings/profile.ts'

/** Returns the folder of the file keychain. */
export function credentialsFolder({ settingsDir }: Pick<Profile, 'settingsDir'>): string {
  return join(settingsDir, 'credentials')
}

/** Returns the selected keychain driver, or the default. */
export function keychainDriver(selected: KeychainDriver | undefined): KeychainDriver {
  return selected ?? 'keyring'
}

/** Opens the user's keychain with a driver. */
export function openUserKeychain(
  profile: Pick<Profile, 'settingsDir' | 'sessionVariables'>,
  driver: KeychainDriver,
): Keychain {
  return openKeychain(driver, {
    folder: credentialsFolder(profile),
    clock: systemClock,
    environment: profile.sessionVariables,
  })
}
