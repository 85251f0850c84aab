import { join } from 'node:path'
import { systemClock } from '../../base/clock.ts'
import type { Keychain, KeychainDriver } from '../../keychain/keychain.ts'
import { openKeychain } from '../../keychain/open.ts'
import type { Profile } from '../settings/profile.ts'

/** Where secrets lie that somebody wanted in a file. */
export function credentialsFolder({ settingsDir }: Pick<Profile, 'settingsDir'>): string {
  return join(settingsDir, 'credentials')
}

/** The driver that was chosen, or the one where nobody chose. */
export function keychainDriver(chosen: KeychainDriver | undefined): KeychainDriver {
  return chosen ?? 'keyring'
}

/** A keychain of this person. */
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
