import { type Clock, timestamp } from '../../base/clock.ts'
import { nameHex } from '../../base/id.ts'
import { type KeychainDriver, KeychainUnavailable } from '../../keychain/keychain.ts'
import { type Profile, runtimeKey } from '../profile.ts'
import { plainLine } from '../terminal-text.ts'
import { keychainService, type Tokens } from './kept-tokens.ts'
import { keychainOf } from './keychains.ts'
import { aloneWithLogins } from './lock.ts'
import { findLogin, forgetLogin, type Login, rememberLogin, type StoredLogin } from './logins.ts'

/** A login to keep. */
export interface NewLogin extends Pick<Login, 'kind' | 'who' | 'driver'> {
  readonly tokens: Tokens
}

/**
 * Keep tokens in a keychain, in the place of what was kept for the same runtime.
 *
 * @throws KeychainUnavailable  nothing has changed
 */
export async function keepLogin(
  profile: Profile,
  { tokens, driver, ...login }: NewLogin,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Promise<void> {
  await aloneWithLogins(profile, signal, async () => {
    const before = findLogin(profile)
    const account = `${runtimeKey(profile)} ${nameHex(8)}`
    await keychainOf(profile, driver).setPassword(keychainService, account, JSON.stringify(tokens))
    rememberLogin(profile, { ...login, driver, account, storedAt: timestamp(clock) })
    if (before) await removeEntry(profile, before).catch(() => {})
  })
}

/**
 * Forget a login. Its keychain goes first: one that is half gone would be said to be gone.
 *
 * @param options.isForced  go on where the keychain does not answer
 * @returns what stays, in words
 * @throws KeychainUnavailable
 */
export async function dropLogin(
  profile: Profile,
  login: StoredLogin,
  { signal, isForced = false }: { signal: AbortSignal; isForced?: boolean },
): Promise<string | undefined> {
  return aloneWithLogins(profile, signal, async () => {
    let left: string | undefined
    try {
      await removeEntry(profile, login)
    } catch (error) {
      if (!(error instanceof KeychainUnavailable) || !isForced) throw error
      left = `${error.message}; its entry "${plainLine(login.account)}" stays`
    }
    forgetLogin(profile.settingsDir, login)
    return left
  })
}

async function removeEntry(profile: Profile, { driver, account }: StoredLogin): Promise<void> {
  await keychainOf(profile, driver).deletePassword(keychainService, account)
}

/** Whether a keychain answers. @throws KeychainUnavailable */
export async function tryKeychain(profile: Profile, driver: KeychainDriver): Promise<void> {
  await keychainOf(profile, driver).getPassword(keychainService, 'is it there')
}
