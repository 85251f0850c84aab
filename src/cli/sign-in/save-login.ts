import { type Clock, timestamp } from '../../base/clock.ts'
import { randomNameHex } from '../../base/id.ts'
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

/** A login to store. */
export interface NewLogin extends Pick<Login, 'kind' | 'who' | 'driver'> {
  readonly tokens: StoredTokens
}

/**
 * Stores tokens in a keychain. Replaces an earlier login for the same runtime.
 *
 * @throws KeychainUnavailable  nothing was changed
 */
export async function saveLogin(
  profile: Profile,
  { tokens, driver, ...login }: NewLogin,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Promise<void> {
  await withLoginsLock(profile, signal, async () => {
    const previous = findLogin(profile)
    const account = createAccountName(profile)
    await openUserKeychain(profile, driver).setPassword(keychainService, account, JSON.stringify(tokens))
    storeLogin(profile, { ...login, driver, account, storedAt: timestamp(clock) })
    if (previous) await removeEntry(profile, previous).catch(() => {})
  })
}

/**
 * Removes a login, first from its keychain, then from the list of logins. If the keychain is not available, the login
 * stays in the list.
 *
 * @param options.isForced  true to remove it from the list even if the keychain is not available
 * @returns description of the keychain entry that could not be removed, if any
 * @throws KeychainUnavailable
 */
export async function removeLogin(
  profile: Profile,
  login: StoredLogin,
  { signal, isForced = false }: { signal: AbortSignal; isForced?: boolean },
): Promise<string | undefined> {
  return withLoginsLock(profile, signal, async () => {
    let problem: string | undefined
    try {
      await removeEntry(profile, login)
    } catch (error) {
      if (!(error instanceof KeychainUnavailable) || !isForced) throw error
      problem = `${error.message}; its entry "${plainLine(login.account)}" was not removed`
    }
    deleteLogin(profile.settingsDir, login)
    return problem
  })
}

/** Result of {@link removeOrphans}. */
interface OrphanResult {
  /** Runtimes whose entries were removed. */
  readonly removed: readonly string[]
  /** Descriptions of keychains that could not be checked. */
  readonly problems: readonly string[]
}

/**
 * Removes keychain entries without a listed login, such as after a command was killed. Several settings folders can
 * share a keychain, so this can also remove the entries of another settings folder.
 *
 * @param drivers  keychains to check
 */
export async function removeOrphans(
  profile: Profile,
  drivers: Iterable<KeychainDriver>,
  signal: AbortSignal,
): Promise<OrphanResult> {
  const removed: string[] = []
  const problems: string[] = []
  await withLoginsLock(profile, signal, async () => {
    const accountsWithLogin = new Set(listLogins(profile.settingsDir).map(({ account }) => account))
    for (const driver of new Set(drivers))
      try {
        const keychain = openUserKeychain(profile, driver)
        for (const account of await keychain.findAccounts(keychainService)) {
          const [, runtime] = accountPattern.exec(account) ?? []
          if (runtime === undefined || accountsWithLogin.has(account)) continue
          await keychain.deletePassword(keychainService, account)
          removed.push(runtime)
        }
      } catch (error) {
        if (!(error instanceof KeychainUnavailable)) throw error
        if (mayContainEntries(error))
          problems.push(`${error.message} Entries without a login were not removed.`)
      }
  })
  return { removed, problems }
}

/** Format of an account name: the runtime, and a suffix that makes it unique. */
const accountPattern = /^(.+) [0-9a-f]{16}$/s

function createAccountName(profile: Profile): string {
  return `${runtimeKey(profile)} ${randomNameHex(8)}`
}

/** Returns true if an unavailable keychain can contain entries. It has none if its library is not installed. */
function mayContainEntries({ driver, reason }: KeychainUnavailable): boolean {
  return driver === 'file' || reason === 'locked' || reason === 'timeout'
}

async function removeEntry(profile: Profile, { driver, account }: StoredLogin): Promise<void> {
  await openUserKeychain(profile, driver).deletePassword(keychainService, account)
}

/**
 * Checks that a keychain can be read, by looking up an account.
 *
 * @throws KeychainUnavailable
 */
export async function requireKeychain(
  profile: Profile,
  driver: KeychainDriver,
  account = 'availability check',
): Promise<void> {
  await openUserKeychain(profile, driver).getPassword(keychainService, account)
}
