import { type Clock, timestamp } from '../../base/clock.ts'
import { nameHex } from '../../base/id.ts'
import { type KeychainDriver, KeychainUnavailable } from '../../keychain/keychain.ts'
import { openUserKeychain } from '../credentials/keychains.ts'
import {
  deleteLogin,
  findLogin,
  type Login,
  listLogins,
  type StoredLogin,
  storeLogin,
} from '../credentials/logins.ts'
import { withLoginsLock } from '../credentials/logins-lock.ts'
import { keychainService, type StoredTokens } from '../credentials/token-store.ts'
import { type Profile, runtimeKey } from '../settings/profile.ts'
import { plainLine } from '../terminal/terminal-text.ts'

/** A login to keep. */
export interface NewLogin extends Pick<Login, 'kind' | 'who' | 'driver'> {
  readonly tokens: StoredTokens
}

/**
 * Keep tokens in a keychain, in the place of what was kept for the same runtime.
 *
 * @throws KeychainUnavailable  nothing has changed
 */
export async function saveLogin(
  profile: Profile,
  { tokens, driver, ...login }: NewLogin,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Promise<void> {
  await withLoginsLock(profile, signal, async () => {
    const before = findLogin(profile)
    const account = accountFor(profile)
    await openUserKeychain(profile, driver).setPassword(keychainService, account, JSON.stringify(tokens))
    storeLogin(profile, { ...login, driver, account, storedAt: timestamp(clock) })
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
export async function removeLogin(
  profile: Profile,
  login: StoredLogin,
  { signal, isForced = false }: { signal: AbortSignal; isForced?: boolean },
): Promise<string | undefined> {
  return withLoginsLock(profile, signal, async () => {
    let left: string | undefined
    try {
      await removeEntry(profile, login)
    } catch (error) {
      if (!(error instanceof KeychainUnavailable) || !isForced) throw error
      left = `${error.message}; its entry "${plainLine(login.account)}" was not removed`
    }
    deleteLogin(profile.settingsDir, login)
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
export async function removeOrphans(
  profile: Profile,
  drivers: Iterable<KeychainDriver>,
  signal: AbortSignal,
): Promise<Orphans> {
  const removed: string[] = []
  const left: string[] = []
  await withLoginsLock(profile, signal, async () => {
    const known = new Set(listLogins(profile.settingsDir).map(({ account }) => account))
    for (const driver of new Set(drivers))
      try {
        const keychain = openUserKeychain(profile, driver)
        for (const account of await keychain.findAccounts(keychainService)) {
          const [, runtime] = accountShape.exec(account) ?? []
          if (runtime === undefined || known.has(account)) continue
          await keychain.deletePassword(keychainService, account)
          removed.push(runtime)
        }
      } catch (error) {
        if (!(error instanceof KeychainUnavailable)) throw error
        if (mayHold(error)) left.push(`${error.message} Entries without a login were not removed.`)
      }
  })
  return { removed, left }
}

/** The name of an entry: the runtime, and what tells apart the entries of one. */
const accountShape = /^(.+) [0-9a-f]{16}$/s

function accountFor(profile: Profile): string {
  return `${runtimeKey(profile)} ${nameHex(8)}`
}

/** A library that is not there, or has no keychain, has nothing either. */
function mayHold({ driver, reason }: KeychainUnavailable): boolean {
  return driver === 'file' || reason === 'locked' || reason === 'timeout'
}

async function removeEntry(profile: Profile, { driver, account }: StoredLogin): Promise<void> {
  await openUserKeychain(profile, driver).deletePassword(keychainService, account)
}

/**
 * Whether a keychain answers.
 *
 * @param account  an entry that it may have
 * @throws KeychainUnavailable
 */
export async function requireKeychain(
  profile: Profile,
  driver: KeychainDriver,
  account = 'is it there',
): Promise<void> {
  await openUserKeychain(profile, driver).getPassword(keychainService, account)
}
