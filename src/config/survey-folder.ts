import { lstatSync, type Stats, statSync } from 'node:fs'
import { join } from 'node:path'
import { sha256 } from '../base/id.ts'
import { isOwnedAndUnshared } from '../base/private-file.ts'
import { readYaml } from '../base/read-yaml.ts'
import { WbError } from '../contract/errors.ts'
import { managedKeys } from '../contract/setup.ts'
import { readManagedEnv } from './managed-env.ts'
import { type RiskyValues, riskyValues } from './risky-values.ts'
import { isWebUrl } from './values.ts'

/**
 * Values in the files of a folder that could send data or run programs, by file name. A file without such
 * values has an empty entry.
 */
export type FolderFiles = Readonly<Record<string, RiskyValues>>

/** Result of {@link surveyFolder}. */
export interface FolderSurvey {
  readonly files: FolderFiles
  /** Reason why the folder cannot be trusted in its current state, regardless of the user's decision. */
  readonly fault?: string
}

/** Contents of `.wb.yaml`. */
export interface ProjectFile {
  workspace?: string
  knowledgeBase?: string
  profile?: string
}

const projectSizeMax = 65_536
const nameCharsMax = 200
/** Length of the digest of a value, in hexadecimal digits. */
const digestChars = 16
const projectKeys = ['workspace', 'knowledgeBase', 'profile'] as const

/**
 * Reads the files that affect commands in the folder once it is trusted. Reads only files inside the folder: a
 * symbolic link, or anything else that is not a regular file, is a fault.
 *
 * @param folder  absolute path
 */
export function surveyFolder(folder: string): FolderSurvey {
  const files: Record<string, RiskyValues> = {}
  try {
    for (const [name, read] of fileReaders) {
      const values = read(join(folder, name))
      if (values) files[name] = values
    }
    return { files }
  } catch (error) {
    if (!(error instanceof WbError)) throw error
    return { files, fault: error.message }
  }
}

const fileReaders: readonly [name: string, read: (path: string) => RiskyValues | undefined][] = [
  ['workbase.yaml', configurationValues],
  ['.workbase/', dataDirectoryValues],
  ['.workbase/workbase.yaml', configurationValues],
  ['.workbase/.env', variableValues],
  ['.wb.yaml', profileValues],
]

function configurationValues(path: string): RiskyValues | undefined {
  return regularFileStats(path) ? riskyValues(readYaml(path)) : undefined
}

/**
 * Files that the runtime writes to the data directory, all with mode 0600: the store and the lock, the files that
 * SQLite creates in addition to these, and the file with the address of the server.
 */
const runtimeFiles = [
  ...['workbase.db', 'serve.lock'].flatMap(name =>
    ['', '-wal', '-shm', '-journal'].map(suffix => name + suffix),
  ),
  'serve.json',
]

/**
 * Checks the data directory, and returns the identity of its store. The store contains addresses and secret
 * releases, so a store that was replaced must be trusted again. The log files of the store are checked too,
 * because SQLite applies them when it opens the store.
 */
function dataDirectoryValues(path: string): RiskyValues | undefined {
  const stats = linkStats(path.replace(/[/\\]$/, ''))
  if (!stats) return undefined
  if (!stats.isDirectory()) throw untrustedFolderError(path, 'is not a folder')
  if (!isOwnedAndUnshared(stats))
    throw untrustedFolderError(path, 'belongs to another user, or other users can write to it')
  for (const name of runtimeFiles) requirePrivateFile(path, name)
  const store = join(path, 'workbase.db')
  if (!regularFileStats(store)) return { store: 'none' }
  const { ino, birthtimeNs } = statSync(store, { bigint: true })
  return { store: `${ino}-${birthtimeNs}` }
}

/**
 * Checks that only this user can open a file, which is true for files that the runtime writes. Files from other
 * programs, such as git, can usually be read by other users.
 *
 * @throws validation_error  when it is not a regular file, is owned by another user, or is readable or
 *   writable by others
 */
function requirePrivateFile(folder: string, name: string): void {
  const path = join(folder, name)
  const stats = regularFileStats(path)
  if (!stats || process.platform === 'win32') return
  if (!isOwnedAndUnshared(stats) || (stats.mode & 0o077) !== 0)
    throw untrustedFolderError(
      path,
      `belongs to another user, or other users can open it; if it is yours, run "chmod 600 .workbase/${name}" in that folder, otherwise "rm .workbase/${name}"`,
    )
}

/**
 * Returns the variables that require trust: those with a web address, and those that the runtime does not write. The
 * runtime writes only provider keys, which cannot send data. Values that could be secret are replaced with digests.
 */
function variableValues(path: string): RiskyValues | undefined {
  if (!regularFileStats(path)) return undefined
  const writtenByRuntime: readonly string[] = managedKeys
  const risky = [...readManagedEnv(join(path, '..'))].filter(
    ([name, value]) => isWebUrl(value) || !writtenByRuntime.includes(name),
  )
  return Object.fromEntries(
    risky.map(([name, value]) => [
      name,
      isWebUrl(value) ? JSON.stringify(value) : `set, ${sha256(value).slice(0, digestChars)}`,
    ]),
  )
}

function profileValues(path: string): RiskyValues | undefined {
  const profile = linkStats(path) && readProjectFile(path).profile
  return profile === undefined ? undefined : { profile: JSON.stringify(profile) }
}

/**
 * Reads a `.wb.yaml`, which contains only names.
 *
 * @throws validation_error  when it is not a regular file, is larger than 64 KB, or has an unknown key or
 *   invalid value; the message names the file and the key
 * @see docs/security.md#rule-6
 */
export function readProjectFile(path: string): ProjectFile {
  if (!regularFileStats(path)) return {}
  const tree = readYaml(path, projectSizeMax) ?? {}
  if (typeof tree !== 'object' || Array.isArray(tree)) throw invalidProjectFile(path, 'contains no keys')
  const values: ProjectFile = {}
  for (const [key, value] of Object.entries(tree)) {
    const projectKey = projectKeys.find(name => name === key)
    if (!projectKey) throw invalidProjectFile(path, `${key} is not a key of this file`)
    if (!isName(value)) throw invalidProjectFile(path, `${key} must be a name`)
    values[projectKey] = value
  }
  return values
}

function isName(value: unknown): value is string {
  return (
    typeof value === 'string' &&
    value.length <= nameCharsMax &&
    /^[^\p{Cc}]*[^\p{Cc}\s][^\p{Cc}]*$/u.test(value)
  )
}

function invalidProjectFile(path: string, reason: string): WbError {
  return new WbError('validation_error', `${path}: ${reason}`, {
    hint: `It can contain ${projectKeys.join(', ')}. To set an address, use a profile: wb profiles add NAME --url URL`,
  })
}

/**
 * Returns the stats of a regular file; undefined if it does not exist.
 *
 * @throws validation_error  when it is not a regular file, such as a symbolic link, a pipe or a folder
 */
function regularFileStats(path: string): Stats | undefined {
  const stats = linkStats(path)
  if (stats && !stats.isFile()) throw untrustedFolderError(path, 'is not a regular file')
  return stats
}

function linkStats(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false })
  } catch (cause) {
    throw new WbError('validation_error', `${path}: cannot be read`, {}, { cause })
  }
}

function untrustedFolderError(path: string, reason: string): WbError {
  return new WbError('validation_error', `${path}: ${reason}`, {
    hint: 'Only regular files that belong to you are used. To use another file, name it with --config or --data-dir.',
  })
}
