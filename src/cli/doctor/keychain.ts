import { KeychainUnavailable } from '../../keychain/keychain.ts'
import { driverOf } from '../credentials/keychains.ts'
import { findLogin } from '../credentials/logins.ts'
import { loginLine } from '../settings/login-line.ts'
import type { Profile } from '../settings/profile.ts'
import { tryKeychain } from '../sign-in/keep.ts'
import { placeOf } from '../sign-in/notes.ts'
import { type Finding, failedWith, ok } from './check.ts'

/**
 * Checks the keychain that stores, or would store, the login of a profile. An unavailable keychain is only a
 * warning if it has no login and the profile does not choose it, because API keys work without it.
 */
export async function keychainFound(profile: Profile): Promise<Finding> {
  const login = findLogin(profile)
  const driver = driverOf(login?.driver ?? profile.keychain)
  try {
    await tryKeychain(profile, driver, login?.account)
    return ok(`logins are stored ${placeOf(driver, profile)}`)
  } catch (error) {
    if (!(error instanceof KeychainUnavailable)) throw error
    const isWanted = login !== undefined || profile.keychain !== undefined
    const { message, hint, reason } = error
    // For a locked keychain, the hint explains how to unlock it.
    const isThere = driver === 'file' || reason === 'locked'
    const line = isThere ? hint : loginLine(profile, ' --insecure-storage')
    const found = failedWith(`${driver}: ${message}`, line)
    return isWanted ? found : { ...found, state: 'warning' }
  }
}
