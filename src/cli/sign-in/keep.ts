import { type Clock, timestamp } from '../../base/clock.ts'
import { randomNameHex } from '../../base/id.ts'
import { type KeychainDriver, KeychainUnavailable } from '../../keychain/keychain.ts'
import { keychainService, type Tokens } from '../credentials/kept-tokens.ts'
import { keychainOf } from '../credentials/keychains.ts'
import { aloneWithLogins } from '../credentials/lock.ts'
import {
  allLogins,
  findLogin,
  forgetLogin,
  type Login,
  rememberLogin,
  type StoredLogin,
} from '../credentials/logins.ts'
import { type Profile, runtimeKey } from '../settings/profile.ts'
import { plainLine } from '../terminal/terminal-text.ts'

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
    const account = accountFor(profile)
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

/** What was found in keychains that no login knows. */
interface Orphans {
  /** Runtimes of what was removed. */
  readonly removed: readonly string[]
  /** What could not be looked at, in words. */
  readonly left: readonly string[]
}

/**
 * Remove what lies in keychains and no login knows: a command that was killed has left it between the keychain and the
 * index. Two folders of settings share a keychain, so it may be a login of the other.
 *
 * @param drivers  whose entries are looked at
 */
export async function dropOrphans(
  profile: Profile,
  drivers: Iterable<KeychainDriver>,
  signal: AbortSignal,
): Promise<Orphans> {
  const removed: string[] = []
  const left: string[] = []
  await aloneWithLogins(profile, signal, async () => {
    const known = new Set(allLogins(profile.settingsDir).map(({ account }) => account))
    for (const driver of new Set(drivers))
      try {
        const keychain = keychainOf(profile, driver)
        for (const account of await keychain.findAccounts(keychainService)) {
          const [, runtime] = accountShape.exec(account) ?? []
          if (runtime === undefined || known.has(account)) continue
          await keychain.deletePassword(keychainService, account)
          removed.push(runtime)
        }
      } catch (error) {
        if (!(error instanceof KeychainUnavailable)) throw error
        if (mayHold(error)) left.push(`${error.message} What no login knows stays in it.`)
      }
  })
  return { removed, left }
}

/** The name of an entry: the runtime, and what tells apart the entries of one. */
const accountShape = /^(.+) [0-9a-f]{16}$/s

function accountFor(profile: Profile): string {
  return `${runtimeKey(profile)} ${randomNameHex(8)}`
}

/** A library that is not there, or has no keychain, has nothing either. */
function mayHold({ driver, reason }: KeychainUnavailable): boolean {
  return driver === 'file' || reason === 'locked' || reason === 'timeout'
}

async function removeEntry(profile: Profile, { driver, account }: StoredLogin): Promise<void> {
  await keychainOf(profile, driver).deletePassword(keychainService, account)
}

/**
 * Whether a keychain answers.
 *
 * @param account  an entry that it may have
 * @throws KeychainUnavailable
 */
export async function tryKeychain(
  profile: Profile,
  driver: KeychainDriver,
  account = 'is it there',
): Promise<void> {
  await keychainOf(profile, driver).getPassword(keychainService, account)
}
