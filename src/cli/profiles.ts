import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { writePrivately } from '../base/private-file.ts'
import type { KeychainDriver } from '../keychain/keychain.ts'
import { UsageError } from './faults.ts'

/** A runtime that a person works with, under a name. It holds no secret. */
export interface StoredProfile {
  /** Address of the runtime; the one of this machine's data directory when left out. */
  url?: string
  /** Where its logins are kept; the keychain of this system when left out. */
  keychain?: KeychainDriver
  /** Id of the workspace that is used unless another is named, by runtime. */
  workspaces: Record<string, string>
}

export interface StoredProfiles {
  /** Name of the profile in use. */
  current: string
  profiles: Record<string, StoredProfile>
}

export const defaultProfile = 'default'

/** What a profile may be named: it is typed, and shown. */
const nameShape = /^[\w][\w.-]{0,63}$/

/** The file of all profiles. */
export function profilesPath(settingsDir: string): string {
  return join(settingsDir, 'profiles.json')
}

/**
 * The profiles that are stored; at least the one in use is there.
 *
 * @throws UsageError  the file is there and cannot be read, so that nothing is written over it
 */
export function readProfiles(settingsDir: string): StoredProfiles {
  const { current = defaultProfile, profiles = {} } = fileOf(profilesPath(settingsDir))
  const known = Object.entries(profiles).map(([name, stored]) => [
    name,
    { ...stored, workspaces: { ...stored.workspaces } },
  ])
  return { current, profiles: { [current]: { workspaces: {} }, ...Object.fromEntries(known) } }
}

/** Change what is stored of profiles, in one step. */
export function changeProfiles(settingsDir: string, change: (stored: StoredProfiles) => void): void {
  const stored = readProfiles(settingsDir)
  change(stored)
  writePrivately(profilesPath(settingsDir), `${JSON.stringify(stored, null, 2)}\n`)
}

/** @throws UsageError  a name that could be taken for something else where it is typed */
export function requireProfileName(name: string): void {
  if (!nameShape.test(name))
    throw new UsageError(`"${name}" cannot name a profile: letters, digits, ".", "_" and "-", 64 at most`)
}

function fileOf(path: string): Partial<StoredProfiles> {
  try {
    const content: unknown = JSON.parse(readFileSync(path, 'utf8'))
    if (typeof content === 'object' && content !== null && !Array.isArray(content)) return content
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return {}
    if (!(error instanceof SyntaxError)) throw error
  }
  throw new UsageError(`${path} is no file of profiles`, [`mend it, or move it away: mv ${path} ${path}.old`])
}

/** @throws UsageError  there is no such profile */
export function requireProfile({ profiles }: StoredProfiles, name: string): StoredProfile {
  const stored = profiles[name]
  if (stored) return stored
  throw new UsageError(`there is no profile named "${name}"`, [
    'wb profiles list',
    `wb profiles add ${name} --url URL    makes it`,
  ])
}
