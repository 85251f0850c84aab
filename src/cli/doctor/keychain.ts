import { KeychainUnavailable } from '../../keychain/keychain.ts'
import { keychainDriver } from '../credentials/keychains.ts'
import { findLogin } from '../credentials/logins.ts'
import { loginCommand } from '../settings/login-command.ts'
import type { Profile } from '../settings/profile.ts'
import { keychainLocation } from '../sign-in/notes.ts'
import { requireKeychain } from '../sign-in/save-login.ts'
import { type Finding, failedWithHint, ok } from './check.ts'

/**
 * Checks the keychain that stores the login of a profile, or would store a new one. If there is no login and the
 * profile does not select a keychain, an unavailable keychain is only a warning, because API keys work without it.
 */
export async function checkKeychain(profile: Profile): Promise<Finding> {
  const login = findLogin(profile)
  const driver = keychainDriver(login?.driver ?? profile.keychain)
  try {
    await requireKeychain(profile, driver, login?.account)
    return ok(`logins are stored ${keychainLocation(driver, profile)}`)
  } catch (error) {
    if (!(error instanceof KeychainUnavailable)) throw error
    const isRequired = login !== undefined || profile.keychain !== undefined
    const { message, hint, reason } = error
    // The hints for files and for a locked keychain explain how to fix the problem. In other cases, a file can be used.
    const isFixable = driver === 'file' || reason === 'locked'
    const suggestion = isFixable ? hint : loginCommand(profile, ' --insecure-storage')
    const finding = failedWithHint(`${driver}: ${message}`, suggestion)
    return isRequired ? finding : { ...finding, state: 'warning' }
  }
}
