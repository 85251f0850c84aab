import { createHash } from 'node:crypto'
import { lstatSync, type Stats, statSync } from 'node:fs'
import { join } from 'node:path'
import { isOurs } from '../base/private-file.ts'
import { WbError } from '../contract/errors.ts'
import { managedKeys } from '../contract/setup.ts'
import { readManagedEnv } from './managed-env.ts'
import { readYaml } from './read-yaml.ts'
import { riskyValues, type Values } from './risky.ts'
import { isWebUrl } from './values.ts'

/** What files of a folder say that could send or run something, by file; a file that says nothing of the kind is there all the same. */
export type FolderFiles = Readonly<Record<string, Values>>

export interface Survey {
  readonly files: FolderFiles
  /** Why they cannot be trusted as they are, whoever says so. */
  readonly fault?: string
}

/** What `.wb.yaml` says. */
export interface ProjectFile {
  workspace?: string
  knowledgeBase?: string
  profile?: string
}

const projectSizeMax = 65_536
const nameCharsMax = 200
const projectKeys = ['workspace', 'knowledgeBase', 'profile'] as const

/**
 * Look through the files that count where the folder is the working directory and trusted. Nothing outside of it is
 * read: a symbolic link, or anything but a regular file, is a fault.
 *
 * @param folder  absolute
 */
export function surveyFolder(folder: string): Survey {
  const files: Record<string, Values> = {}
  try {
    for (const [name, look] of looks) {
      const values = look(join(folder, name))
      if (values) files[name] = values
    }
    return { files }
  } catch (error) {
    if (!(error instanceof WbError)) throw error
    return { files, fault: error.message }
  }
}

const looks: readonly [name: string, look: (path: string) => Values | undefined][] = [
  ['workbase.yaml', configuration],
  ['.workbase/', dataDirectory],
  ['.workbase/workbase.yaml', configuration],
  ['.workbase/.env', variables],
  ['.wb.yaml', chosenProfile],
]

function configuration(path: string): Values | undefined {
  return plainFile(path) ? riskyValues(readYaml(path)) : undefined
}

/** What the runtime writes there itself, all with mode 0600: a store and a lock, and what SQLite puts beside either. */
const ownFiles = [
  ...['workbase.db', 'serve.lock'].flatMap(name => ['', '-wal', '-shm', '-journal'].map(end => name + end)),
  'serve.json',
]

/**
 * Its store holds addresses, and releases of secrets: another file in its place is another store. A log beside it is
 * written into it when it is opened, so that one which was brought would be another store as well.
 */
function dataDirectory(path: string): Values | undefined {
  const stats = entry(path.replace(/[/\\]$/, ''))
  if (!stats) return undefined
  if (!stats.isDirectory()) throw untrustable(path, 'is no folder')
  if (!isOurs(stats)) throw untrustable(path, 'belongs to somebody else, or others may write to it')
  for (const name of ownFiles) requireOwn(path, name)
  const store = join(path, 'workbase.db')
  if (!plainFile(store)) return { store: 'none' }
  const { ino, birthtimeNs } = statSync(store, { bigint: true })
  return { store: `${ino}-${birthtimeNs}` }
}

/**
 * What others may read was not written by the runtime: git, for one, brings files with all that the umask allows.
 *
 * @throws validation_error  not a regular file, owned by another user, or readable or writable by others
 */
function requireOwn(folder: string, name: string): void {
  const path = join(folder, name)
  const stats = plainFile(path)
  if (!stats || process.platform === 'win32') return
  if (!isOurs(stats) || (stats.mode & 0o077) !== 0)
    throw untrustable(
      path,
      `is not as wb writes it, for its owner alone; where it is yours, "chmod 600 .workbase/${name}" in that folder lets it count, else "rm .workbase/${name}" removes it`,
    )
}

/** What the runtime itself writes there is a key of a provider, which leads nowhere; no other value that may be secret is kept. */
function variables(path: string): Values | undefined {
  if (!plainFile(path)) return undefined
  const written: readonly string[] = managedKeys
  const risky = [...readManagedEnv(join(path, '..'))].filter(
    ([name, value]) => isWebUrl(value) || !written.includes(name),
  )
  return Object.fromEntries(
    risky.map(([name, value]) => [name, isWebUrl(value) ? JSON.stringify(value) : `set, ${digest(value)}`]),
  )
}

function chosenProfile(path: string): Values | undefined {
  const profile = entry(path) && readProjectFile(path).profile
  return profile === undefined ? undefined : { profile: JSON.stringify(profile) }
}

/**
 * What a `.wb.yaml` says: names, and nothing else.
 *
 * @throws validation_error  not a regular file, over 64 KB, or another key than it may hold; names file and key
 * @see docs/security.md#rule-6
 */
export function readProjectFile(path: string): ProjectFile {
  if (!plainFile(path)) return {}
  const tree = readYaml(path, projectSizeMax) ?? {}
  if (typeof tree !== 'object' || Array.isArray(tree)) throw misfit(path, 'holds no keys')
  const said: ProjectFile = {}
  for (const [key, value] of Object.entries(tree)) {
    const known = projectKeys.find(name => name === key)
    if (!known) throw misfit(path, `${key} is no key of this file`)
    if (!isName(value)) throw misfit(path, `${key} must be a name`)
    said[known] = value
  }
  return said
}

function isName(value: unknown): value is string {
  return (
    typeof value === 'string' &&
    value.length <= nameCharsMax &&
    /^[^\p{Cc}]*[^\p{Cc}\s][^\p{Cc}]*$/u.test(value)
  )
}

function misfit(path: string, reason: string): WbError {
  return new WbError('validation_error', `${path}: ${reason}`, {
    hint: `It may hold ${projectKeys.join(', ')}; an address belongs to a profile: wb profiles add NAME --url URL`,
  })
}

/**
 * @returns undefined where there is nothing
 * @throws validation_error  a symbolic link, a pipe, a folder
 */
function plainFile(path: string): Stats | undefined {
  const stats = entry(path)
  if (stats && !stats.isFile()) throw untrustable(path, 'is not a regular file')
  return stats
}

function entry(path: string): Stats | undefined {
  try {
    return lstatSync(path, { throwIfNoEntry: false })
  } catch (cause) {
    throw new WbError('validation_error', `${path}: cannot be looked at`, {}, { cause })
  }
}

function untrustable(path: string, reason: string): WbError {
  return new WbError('validation_error', `${path}: ${reason}`, {
    hint: 'A file of a folder counts only where it is one itself; --config and --data-dir name others.',
  })
}

function digest(value: string): string {
  return createHash('sha256').update(value).digest('hex').slice(0, 16)
}
