import { join } from 'node:path'
import { isObject } from '../../base/is-object.ts'
import type { KeychainDriver } from '../../keychain/keychain.ts'
import { type CredentialChoice, type Profile, runtimeKey } from '../settings/profile.ts'
import { readSettings, withoutPrototype, writeSettings } from '../settings/settings-file.ts'

/** A stored login without its secret, which is in the keychain. */
export interface Login {
  readonly kind: CredentialChoice
  /** Driver of the keychain entry. Other drivers cannot find the entry. */
  readonly driver: KeychainDriver
  /** Account name of the keychain entry. */
  readonly account: string
  /** Name of the user, as reported by the runtime at sign-in. */
  readonly who: string
  /** Time in ISO 8601. */
  readonly storedAt: string
}

/** A login with its profile and runtime. */
export interface StoredLogin extends Login {
  readonly profile: string
  /** Address of a runtime, or a data directory. */
  readonly runtime: string
}

/** Logins by profile and runtime. */
type LoginIndex = Record<string, Record<string, Login>>

/** Returns the path of the login index. */
export function loginsPath(settingsDir: string): string {
  return join(settingsDir, 'logins.json')
}

/** Reads the login index. Treats a corrupt file or entry as missing; the next sign-in replaces it. */
function readIndex(settingsDir: string): LoginIndex {
  const content = readSettings(loginsPath(settingsDir))
  const profiles = typeof content === 'string' ? [] : Object.entries(content)
  const validEntries = profiles.map(([profile, logins]) => [
    profile,
    isObject(logins) ? Object.fromEntries(Object.entries(logins).filter(([, login]) => isLogin(login))) : {},
  ])
  return withoutPrototype(Object.fromEntries(validEntries))
}

function isLogin(login: unknown): login is Login {
  return isObject(login) && [login.account, login.who, login.driver].every(value => typeof value === 'string')
}

/** Changes the login index. The caller must hold the logins lock. */
function changeIndex(settingsDir: string, change: (index: LoginIndex) => void): void {
  const index = readIndex(settingsDir)
  change(index)
  const nonEmpty = Object.entries(index).filter(([, logins]) => Object.keys(logins).length > 0)
  writeSettings(loginsPath(settingsDir), Object.fromEntries(nonEmpty))
}

/** Returns the stored login for the runtime of a profile. */
export function findLogin(profile: Profile): StoredLogin | undefined {
  const runtime = runtimeKey(profile)
  const login = readIndex(profile.settingsDir)[profile.name]?.[runtime]
  // The account name starts with the runtime, so a modified file cannot send the login to another runtime.
  if (!login?.account.startsWith(`${runtime} `)) return undefined
  return { ...login, profile: profile.name, runtime }
}

/** Returns all stored logins. */
export function listLogins(settingsDir: string): StoredLogin[] {
  return Object.entries(readIndex(settingsDir)).flatMap(([profile, logins]) =>
    Object.entries(logins).map(([runtime, login]) => ({ ...login, profile, runtime })),
  )
}

export function storeLogin(profile: Profile, login: Login): void {
  changeIndex(profile.settingsDir, index => {
    index[profile.name] = { ...index[profile.name], [runtimeKey(profile)]: login }
  })
}

export function deleteLogin(settingsDir: string, { profile, runtime }: StoredLogin): void {
  changeIndex(settingsDir, index => {
    delete index[profile]?.[runtime]
  })
}

/** Moves the logins of a renamed profile. The caller must hold the logins lock. */
export function renameLogins(settingsDir: string, from: string, to: string): void {
  changeIndex(settingsDir, index => {
    const { [from]: logins } = index
    delete index[from]
    if (logins) index[to] = logins
  })
}
