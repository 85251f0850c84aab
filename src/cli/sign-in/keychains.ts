import { join } from 'node:path'
import { systemClock } from '../../base/clock.ts'
import type { Keychain, KeychainDriver } from '../../keychain/keychain.ts'
import { openKeychain } from '../../keychain/open.ts'
import { type Profile, sessionVariables } from '../profile.ts'

/** Where secrets lie that somebody wanted in a file. */
export function credentialsFolder({ settingsDir }: Pick<Profile, 'settingsDir'>): string {
  return join(settingsDir, 'credentials')
}

/** A keychain of this person. */
export function keychainOf(profile: Pick<Profile, 'settingsDir'>, driver: KeychainDriver): Keychain {
  return openKeychain(driver, {
    folder: credentialsFolder(profile),
    clock: systemClock,
    environment: sessionVariables(),
  })
}
