import { join } from 'node:path'
import { isObject } from '../../base/is-object.ts'
import { nearestMatch } from '../../base/nearest-match.ts'
import type { KeychainDriver } from '../../keychain/keychain.ts'
import { UsageError } from '../errors.ts'
import { moveAwayCommand, readSettings, type Settings, withoutPrototype } from './settings-file.ts'

/** A stored profile. It contains no secrets. */
export interface StoredProfile {
  /** Address of the runtime; undefined for the data directory of this machine. */
  url?: string
  /** Keychain for logins; undefined for the default. */
  keychain?: KeychainDriver
  /** IDs of default workspaces, by runtime. @see runtimeKey */
  workspaces: Record<string, string>
}

export interface StoredProfiles {
  /** Name of the profile that commands use by default. */
  current: string
  profiles: Record<string, StoredProfile>
}

export const defaultProfile = 'default'

/** Format of profile names. */
const profileNamePattern = /^[\w][\w.-]{0,63}$/

export function profilesPath(settingsDir: string): string {
  return join(settingsDir, 'profiles.json')
}

/**
 * Reads the stored profiles. The result always contains the current profile.
 *
 * @throws UsageError  the file exists but cannot be read, or is invalid; it is not overwritten
 */
export function readProfiles(settingsDir: string): StoredProfiles {
  const { current = defaultProfile, profiles = {} } = readProfilesFile(profilesPath(settingsDir))
  const result: StoredProfiles['profiles'] = withoutPrototype({
    [current]: { workspaces: withoutPrototype({}) },
  })
  for (const [name, stored] of Object.entries(profiles))
    result[name] = { ...stored, workspaces: withoutPrototype({ ...stored.workspaces }) }
  return { current, profiles: result }
}

/** Returns the command that switches to a profile for this machine, and creates such a profile if necessary. */
export function localProfileCommand({ profiles }: StoredProfiles): string {
  const [existingProfile] = Object.keys(profiles).filter(name => profiles[name]?.url === undefined)
  if (existingProfile !== undefined) return `wb profiles use ${existingProfile}`
  const name = ['here', 'local'].find(candidate => !profiles[candidate]) ?? 'this-machine'
  return `wb profiles add ${name} && wb profiles use ${name}`
}

/** @throws UsageError  the name contains characters that are not allowed, or is too long */
export function requireProfileName(name: string): void {
  if (!profileNamePattern.test(name))
    throw new UsageError(
      `"${name}" is not a valid profile name: use at most 64 letters, digits, ".", "_" and "-"`,
    )
}

/**
 * Checks that no other profile has this name or a name that differs only in case, because users could confuse them.
 *
 * @param currentName  current name of the profile, if it is renamed; the new name may differ from it only in case
 * @throws UsageError  another profile has the name
 */
export function requireFreeName({ profiles }: StoredProfiles, name: string, currentName?: string): void {
  const names = Object.keys(profiles).filter(other => other !== currentName || other === name)
  const existingName = names.find(other => other.toLowerCase() === name.toLowerCase())
  if (existingName === undefined) return
  const caseNote = existingName === name ? '' : `; ${name} differs from it only in case`
  throw new UsageError(`a profile named ${existingName} already exists${caseNote}`, [
    `wb profiles use ${existingName}`,
  ])
}

function readProfilesFile(path: string): Partial<StoredProfiles> {
  const content = readSettings(path)
  if (content === 'none') return {}
  const invalidPath = content === 'broken' ? '' : findInvalidValue(content)
  if (invalidPath === undefined) return content as Partial<StoredProfiles>
  throw new UsageError(
    `${path} is not a valid profiles file${invalidPath && `: "${invalidPath}" is invalid`}`,
    ['correct the file, or rename it:', moveAwayCommand(path)],
  )
}

/** Returns the key of the first invalid value, such as `profiles.work`; undefined if the file is valid. */
function findInvalidValue({ current = '', profiles = {} }: Settings): string | undefined {
  if (typeof current !== 'string') return 'current'
  if (!isObject(profiles)) return 'profiles'
  const invalidName = Object.keys(profiles).find(name => !isProfile(profiles[name]))
  return invalidName && `profiles.${invalidName}`
}

function isProfile(stored: unknown): boolean {
  if (!isObject(stored)) return false
  const { url, workspaces = {} } = stored
  const isAddress = typeof url === 'string' && /^https?:/.test(url) && URL.canParse(url)
  return (url === undefined || isAddress) && isObject(workspaces)
}

/** Returns the profile with this name. @throws UsageError  it does not exist */
export function requireProfile({ profiles }: StoredProfiles, name: string): StoredProfile {
  const stored = profiles[name]
  if (stored) return stored
  const similar = nearestMatch(name, Object.keys(profiles))
  throw new UsageError(`there is no profile named "${name}"`, [
    ...(similar ? [`did you mean ${similar}?`] : []),
    'wb profiles list',
    `wb profiles add ${name} --url URL    creates it`,
  ])
}
