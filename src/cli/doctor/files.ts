import { accessSync, constants, readdirSync, type Stats, statfsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { statsOf } from '../../base/folder.ts'
import { hostFacts } from '../../base/host-facts.ts'
import { shellWord } from '../../base/shell-word.ts'
import { credentialsFolder } from '../credentials/keychains.ts'
import { loginsPath } from '../credentials/logins.ts'
import type { Profile } from '../settings/profile.ts'
import { profilesPath } from '../settings/profiles.ts'
import { type Finding, failed, ok, skipped, warning } from './check.ts'

const freeBytesMin = 100_000_000
const freeBytesWarning = 1_000_000_000
/** Permission bits of the group and of other users. @see chmod(1) */
const otherUserBits = { any: 0o077, write: 0o022 }

/** Checks that only the owner can access the data directory, and that it is writable and has free space. */
export function checkDataDirFiles({ dataDir }: Pick<Profile, 'dataDir'>): Finding[] {
  const stats = statsOf(dataDir)
  if (!stats) return [missingFinding(dataDir)]
  if (!stats.isDirectory())
    return [
      failed(`${dataDir} is not a directory`, `mv ${shellWord(dataDir)} ${shellWord(`${dataDir}.old`)}`),
    ]
  const problems = [
    unwritableFinding(dataDir),
    exposedFinding(dataDir, stats),
    fullDiskFinding(dataDir),
  ].filter(finding => finding !== undefined)
  return problems.length > 0 ? problems : [ok(`${dataDir}, ${formatFreeSpace(dataDir)} free`)]
}

/** Returns the finding for a missing data directory. The first command creates it, if its parent is writable. */
function missingFinding(dataDir: string): Finding {
  let parent = dirname(dataDir)
  while (!statsOf(parent) && dirname(parent) !== parent) parent = dirname(parent)
  if (statsOf(parent)?.isDirectory() && isWritable(parent)) return ok(`${dataDir}, not created yet`)
  return failed(`${dataDir} cannot be created in ${parent}`, 'wb doctor --data-dir DIR')
}

function unwritableFinding(folder: string): Finding | undefined {
  if (isWritable(folder)) return undefined
  return failed(`${folder} is not writable`, `sudo chown -R "$USER" ${shellWord(folder)}`)
}

/**
 * Returns a finding if other users can access the folder. If they can write to it, commands do not trust the server
 * that uses the folder. If they can read it, its secrets are exposed.
 */
function exposedFinding(folder: string, { mode }: Stats): Finding | undefined {
  if (!isOpenTo(mode, otherUserBits.any)) return undefined
  const fix = `chmod 700 ${shellWord(folder)}`
  return isOpenTo(mode, otherUserBits.write)
    ? failed(`${folder} is writable by other users (${formatMode(mode)})`, fix)
    : warning(`${folder} is readable by other users (${formatMode(mode)})`, fix)
}

function fullDiskFinding(folder: string): Finding | undefined {
  const bytes = freeBytes(folder)
  if (bytes >= freeBytesWarning) return undefined
  const fix = `du -sh ${shellWord(folder)}/*`
  return (bytes < freeBytesMin ? failed : warning)(`${folder} has ${formatFreeSpace(folder)} left`, fix)
}

/**
 * Checks that only the owner can open files with secrets: provider keys, workspace secrets, logins, and the
 * addresses to which logins are sent.
 */
export function checkSecretFiles({
  dataDir,
  settingsDir,
}: Pick<Profile, 'dataDir' | 'settingsDir'>): Finding[] {
  if (hostFacts.platform === 'win32') return [skipped('not checked on Windows')]
  const secretPaths = [
    join(dataDir, '.env'),
    join(dataDir, 'secrets'),
    profilesPath(settingsDir),
    loginsPath(settingsDir),
    credentialsFolder({ settingsDir }),
  ]
  const existing = secretPaths.filter(path => statsOf(path))
  const problems = existing.flatMap(path => exposedSecretFindings(path))
  if (problems.length > 0) return problems
  return [ok(existing.length === 0 ? 'no files with secrets' : 'only you can read the files with secrets')]
}

/** Returns at most one finding for a file or folder. */
function exposedSecretFindings(root: string): Finding[] {
  const exposed = pathsBelow(root).filter(path => isOpenTo(statsOf(path)?.mode ?? 0, otherUserBits.any))
  const [first] = exposed
  if (first === undefined) return []
  if (exposed.length > 1)
    return [
      failed(
        `${first} and ${exposed.length - 1} more in ${root} are open to other users`,
        `chmod -R go= ${shellWord(root)}`,
      ),
    ]
  const mode = statsOf(first)?.isDirectory() ? '700' : '600'
  return [failed(`${first} is open to other users`, `chmod ${mode} ${shellWord(first)}`)]
}

/** Returns a path and all paths below it. */
function pathsBelow(root: string): string[] {
  if (!statsOf(root)?.isDirectory()) return [root]
  return [root, ...readdirSync(root, { recursive: true, encoding: 'utf8' }).map(name => join(root, name))]
}

function isOpenTo(mode: number, bits: number): boolean {
  return hostFacts.platform !== 'win32' && (mode & bits) !== 0
}

function isWritable(folder: string): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK)
    return true
  } catch {
    return false
  }
}

function formatMode(mode: number): string {
  return (mode & 0o777).toString(8)
}

function freeBytes(folder: string): number {
  const { bavail, bsize } = statfsSync(folder)
  return bavail * bsize
}

function formatFreeSpace(folder: string): string {
  return `${(freeBytes(folder) / 1e9).toFixed(1)} GB`
}
