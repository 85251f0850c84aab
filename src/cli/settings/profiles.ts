import { join } from 'node:path'
import { isObject } from '../../base/is-object.ts'
import type { KeychainDriver } from '../../keychain/keychain.ts'
import { UsageError } from '../errors.ts'
import { nearestMatch } from '../terminal/nearest-match.ts'
import { moveAwayCommand, readSettings, type Settings, withoutPrototype } from './settings-file.ts'

/** A stored profile: a named runtime. Contains no secrets. */
export interface StoredProfile {
  /** Address of the runtime; undefined for the data directory of this machine. */
  url?: string
  /** Keychain for logins; undefined for the default. */
  keychain?: KeychainDriver
  /** ID of the default workspace, by runtime. */
  workspaces: Record<string, string>
}

export interface StoredProfiles {
  /** Name of the profile in use. */
  current: string
  profiles: Record<string, StoredProfile>
}

export const defaultProfile = 'default'

/** Format of profile names. */
const profileNamePattern = /^[\w][\w.-]{0,63}$/

/** Returns the path of the profiles file. */
export function profilesPath(settingsDir: string): string {
  return join(settingsDir, 'profiles.json')
}

/**
 * Reads the stored profiles. The current one always exists.
 *
 * @throws UsageError  the file exists but cannot be read; it is not overwritten
 */
export function readProfiles(settingsDir: string): StoredProfiles {
  const { current = defaultProfile, profiles = {} } = readProfilesFile(profilesPath(settingsDir))
  const known: StoredProfiles['profiles'] = withoutPrototype({
    [current]: { workspaces: withoutPrototype({}) },
  })
  for (const [name, stored] of Object.entries(profiles))
    known[name] = { ...stored, workspaces: withoutPrototype({ ...stored.workspaces }) }
  return { current, profiles: known }
}

/** Returns the command that switches to a profile without an address, and creates one if necessary. */
export function localProfileCommand({ profiles }: StoredProfiles): string {
  const [known] = Object.keys(profiles).filter(name => profiles[name]?.url === undefined)
  if (known !== undefined) return `wb profiles use ${known}`
  const name = ['here', 'local'].find(free => !profiles[free]) ?? 'this-machine'
  return `wb profiles add ${name} && wb profiles use ${name}`
}

/** @throws UsageError  a name that could be taken for something else where it is typed */
export function requireProfileName(name: string): void {
  if (!profileNamePattern.test(name))
    throw new UsageError(
      `"${name}" is not a valid profile name: use at most 64 letters, digits, ".", "_" and "-"`,
    )
}

/**
 * Checks that no other profile has a name. Names are case-sensitive, so names that differ only in case would be confused.
 *
 * @param renamed  the profile that gets the name; it can change its own case
 * @throws UsageError  the name is taken
 */
export function requireFreeName({ profiles }: StoredProfiles, name: string, renamed?: string): void {
  const names = Object.keys(profiles).filter(other => other !== renamed || other === name)
  const taken = names.find(other => other.toLowerCase() === name.toLowerCase())
  if (taken === undefined) return
  const differs = taken === name ? '' : `; ${name} differs from it only in case`
  throw new UsageError(`a profile named ${taken} already exists${differs}`, [`wb profiles use ${taken}`])
}

function readProfilesFile(path: string): Partial<StoredProfiles> {
  const content = readSettings(path)
  if (content === 'none') return {}
  const odd = content === 'broken' ? '' : findInvalidValue(content)
  if (odd === undefined) return content as Partial<StoredProfiles>
  throw new UsageError(`${path} is not a valid profiles file${odd && `: "${odd}" is invalid`}`, [
    'fix it, or move it away:',
    moveAwayCommand(path),
  ])
}

/** Returns the path of the first invalid value; undefined if the file is valid. */
function findInvalidValue({ current = '', profiles = {} }: Settings): string | undefined {
  if (typeof current !== 'string') return 'current'
  if (!isObject(profiles)) return 'profiles'
  const odd = Object.keys(profiles).find(name => !isProfile(profiles[name]))
  return odd && `profiles.${odd}`
}

function isProfile(stored: unknown): boolean {
  if (!isObject(stored)) return false
  const { url, workspaces = {} } = stored
  const isAddress = typeof url === 'string' && /^https?:/.test(url) && URL.canParse(url)
  return (url === undefined || isAddress) && isObject(workspaces)
}

/** @throws UsageError  there is no such profile */
export function requireProfile({ profiles }: StoredProfiles, name: string): StoredProfile {
  const stored = profiles[name]
  if (stored) return stored
  const close = nearestMatch(name, Object.keys(profiles))
  throw new UsageError(`there is no profile named "${name}"`, [
    ...(close ? [`did you mean ${close}?`] : []),
    'wb profiles list',
    `wb profiles add ${name} --url URL    creates it`,
  ])
}
