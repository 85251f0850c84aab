import { KeychainUnavailable } from '../../keychain/keychain.ts'
import { driverOf } from '../credentials/keychains.ts'
import { findLogin } from '../credentials/logins.ts'
import { loginLine } from '../settings/login-line.ts'
import type { Profile } from '../settings/profile.ts'
import { tryKeychain } from '../sign-in/keep.ts'
import { placeOf } from '../sign-in/notes.ts'
import { type Finding, failedWith, ok } from './check.ts'

/**
 * Whether the keychain answers that has the login of a profile, or that would get it. Where no login lies there and
 * nobody chose it, one that does not is no failure: keys do without.
 */
export async function keychainFound(profile: Profile): Promise<Finding> {
  const login = findLogin(profile)
  const driver = driverOf(login?.driver ?? profile.keychain)
  try {
    await tryKeychain(profile, driver, login?.account)
    return ok(`logins are kept ${placeOf(driver, profile)}`)
  } catch (error) {
    if (!(error instanceof KeychainUnavailable)) throw error
    const isWanted = login !== undefined || profile.keychain !== undefined
    const { message, hint, reason } = error
    // Of what is there and shut, the hint is what opens it.
    const isThere = driver === 'file' || reason === 'locked'
    const line = isThere ? hint : loginLine(profile, ' --insecure-storage')
    const found = failedWith(`${driver}: ${message}`, line)
    return isWanted ? found : { ...found, state: 'warning' }
  }
}
