import { join } from 'node:path'
import { isObject } from '../../base/is-object.ts'
import type { KeychainDriver } from '../../keychain/keychain.ts'
import { type CredentialChoice, type Profile, runtimeKey } from '../settings/profile.ts'
import { bare, readSettings, writeSettings } from '../settings/settings-file.ts'

/** What is known of a stored credential without its keychain. It holds no secret. */
export interface Login {
  readonly kind: CredentialChoice
  /** Who wrote the entry: another driver would not find it. */
  readonly driver: KeychainDriver
  /** The entry's name in the keychain. */
  readonly account: string
  /** Who it is, as the runtime said when it was stored. */
  readonly who: string
  /** ISO-8601. */
  readonly storedAt: string
}

/** A login and what it is for. */
export interface StoredLogin extends Login {
  readonly profile: string
  /** Address of a runtime, or a data directory. */
  readonly runtime: string
}

/** By profile, then by runtime. */
type Index = Record<string, Record<string, Login>>

/** The file that says which logins there are. */
export function loginsPath(settingsDir: string): string {
  return join(settingsDir, 'logins.json')
}

/** What is broken, a file or a login in it, means that no caller is signed in: to sign in again writes it anew. */
function readIndex(settingsDir: string): Index {
  const content = readSettings(loginsPath(settingsDir))
  const profiles = typeof content === 'string' ? [] : Object.entries(content)
  const sound = profiles.map(([profile, logins]) => [
    profile,
    isObject(logins) ? Object.fromEntries(Object.entries(logins).filter(([, login]) => isLogin(login))) : {},
  ])
  return bare(Object.fromEntries(sound))
}

function isLogin(login: unknown): login is Login {
  return isObject(login) && [login.account, login.who, login.driver].every(word => typeof word === 'string')
}

/** For who holds the lock of logins: another process may change the same file. */
function changeIndex(settingsDir: string, change: (index: Index) => void): void {
  const index = readIndex(settingsDir)
  change(index)
  const kept = Object.entries(index).filter(([, logins]) => Object.keys(logins).length > 0)
  writeSettings(loginsPath(settingsDir), Object.fromEntries(kept))
}

/** The login that is stored for the runtime of a profile. */
export function findLogin(profile: Profile): StoredLogin | undefined {
  const runtime = runtimeKey(profile)
  const login = readIndex(profile.settingsDir)[profile.name]?.[runtime]
  // Its name in the keychain says whose it is: a file that was changed leads it to no other runtime.
  if (!login?.account.startsWith(`${runtime} `)) return undefined
  return { ...login, profile: profile.name, runtime }
}

/** All that are stored. */
export function allLogins(settingsDir: string): StoredLogin[] {
  return Object.entries(readIndex(settingsDir)).flatMap(([profile, logins]) =>
    Object.entries(logins).map(([runtime, login]) => ({ ...login, profile, runtime })),
  )
}

export function rememberLogin(profile: Profile, login: Login): void {
  changeIndex(profile.settingsDir, index => {
    index[profile.name] = { ...index[profile.name], [runtimeKey(profile)]: login }
  })
}

export function forgetLogin(settingsDir: string, { profile, runtime }: StoredLogin): void {
  changeIndex(settingsDir, index => {
    delete index[profile]?.[runtime]
  })
}

/** Logins of a profile that has another name now; for who holds their lock. */
export function renameLogins(settingsDir: string, from: string, to: string): void {
  changeIndex(settingsDir, index => {
    const { [from]: logins } = index
    delete index[from]
    if (logins) index[to] = logins
  })
}
