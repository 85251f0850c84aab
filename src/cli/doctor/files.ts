import { accessSync, constants, readdirSync, type Stats, statfsSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
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
const otherUsers = { any: 0o077, write: 0o022 }

/** Checks that the data directory is writable for its owner only and has free space. */
export function checkDataDirFiles({ dataDir }: Pick<Profile, 'dataDir'>): Finding[] {
  const stats = statsOf(dataDir)
  if (!stats) return [missingFinding(dataDir)]
  if (!stats.isDirectory())
    return [
      failed(`${dataDir} is not a directory`, `mv ${shellWord(dataDir)} ${shellWord(`${dataDir}.old`)}`),
    ]
  const wrong = [unwritableFinding(dataDir), exposedFinding(dataDir, stats), fullDiskFinding(dataDir)].filter(
    finding => finding !== undefined,
  )
  return wrong.length > 0 ? wrong : [ok(`${dataDir}, ${formatFreeSpace(dataDir)} free`)]
}

/** The first command creates the directory, if it can. */
function missingFinding(dataDir: string): Finding {
  let above = dirname(dataDir)
  while (!statsOf(above) && dirname(above) !== above) above = dirname(above)
  if (statsOf(above)?.isDirectory() && isWritable(above)) return ok(`${dataDir}, not created yet`)
  return failed(`${dataDir} cannot be created in ${above}`, 'wb doctor --data-dir DIR')
}

function unwritableFinding(folder: string): Finding | undefined {
  if (isWritable(folder)) return undefined
  return failed(`${folder} is not writable`, `sudo chown -R "$USER" ${shellWord(folder)}`)
}

/**
 * Commands do not trust a server whose folder others can write. Secrets in a folder that others can read are
 * exposed.
 */
function exposedFinding(folder: string, { mode }: Stats): Finding | undefined {
  if (!isOpenTo(mode, otherUsers.any)) return undefined
  const mend = `chmod 700 ${shellWord(folder)}`
  return isOpenTo(mode, otherUsers.write)
    ? failed(`${folder} is writable for other users (${formatMode(mode)})`, mend)
    : warning(`${folder} is readable for other users (${formatMode(mode)})`, mend)
}

function fullDiskFinding(folder: string): Finding | undefined {
  const bytes = freeBytes(folder)
  if (bytes >= freeBytesWarning) return undefined
  const mend = `du -sh ${shellWord(folder)}/*`
  return (bytes < freeBytesMin ? failed : warning)(`${folder} has ${formatFreeSpace(folder)} left`, mend)
}

/**
 * Checks that only the owner can open the files with secrets: provider keys, secrets of workspaces, logins,
 * and the addresses they are sent to.
 */
export function checkSecretFiles({
  dataDir,
  settingsDir,
}: Pick<Profile, 'dataDir' | 'settingsDir'>): Finding[] {
  if (hostFacts.platform === 'win32') return [skipped('not checked on Windows')]
  const places = [
    join(dataDir, '.env'),
    join(dataDir, 'secrets'),
    profilesPath(settingsDir),
    loginsPath(settingsDir),
    credentialsFolder({ settingsDir }),
  ]
  const there = places.filter(place => statsOf(place))
  const wrong = there.flatMap(place => exposedSecretFindings(place))
  if (wrong.length > 0) return wrong
  return [ok(there.length === 0 ? 'no files with secrets' : 'only you can read the files with secrets')]
}

/** Returns at most one finding for a file or folder. */
function exposedSecretFindings(place: string): Finding[] {
  const open = pathsBelow(place).filter(path => isOpenTo(statsOf(path)?.mode ?? 0, otherUsers.any))
  const [first] = open
  if (first === undefined) return []
  if (open.length > 1)
    return [
      failed(
        `${first} and ${open.length - 1} more in ${place} are open to other users`,
        `chmod -R go= ${shellWord(place)}`,
      ),
    ]
  const mode = statsOf(first)?.isDirectory() ? '700' : '600'
  return [failed(`${first} is open to other users`, `chmod ${mode} ${shellWord(first)}`)]
}

/** Returns a path and all paths below it. */
function pathsBelow(place: string): string[] {
  if (!statsOf(place)?.isDirectory()) return [place]
  return [place, ...readdirSync(place, { recursive: true, encoding: 'utf8' }).map(name => join(place, name))]
}

/** Returns undefined if the path does not exist. */
function statsOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOTDIR') return undefined
    throw error
  }
}

function isOpenTo(mode: number, rights: number): boolean {
  return hostFacts.platform !== 'win32' && (mode & rights) !== 0
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
