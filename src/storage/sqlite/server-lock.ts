import { lstatSync, readFileSync, rmSync, statSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { isInTheClear } from '../../base/loopback.ts'
import { isOurs, writePrivately } from '../../base/private-file.ts'
import { isBusy } from './connection.ts'
import Database from './driver.ts'
import { holdExclusively } from './exclusive.ts'
import { unwritable } from './faults.ts'

/** Where the `wb serve` of a data directory answers. */
export interface Announcement {
  url: string
  pid: number
  startedAt: string
  /** Certificate (PEM) of an https address, to trust for this connection. */
  certificate?: string
}

/** The lock of a data directory, held until released or until the process ends. */
export interface ServerLock {
  /** Let commands find this server. */
  announce(announcement: Announcement): void
  release(): void
}

export type Taken = { lock: ServerLock } | { heldBy: Announcement | undefined }

const lockName = 'serve.lock'
const announcementName = 'serve.json'
/** A probe holds its shared lock for microseconds; a server holds on. */
const patienceMs = 250

/**
 * Become the one server of a data directory.
 *
 * @returns the lock, or who holds it (undefined while that server is still starting)
 * @throws control_plane_unavailable  the data directory cannot be written; so does `announce`
 * @see docs/security.md#rule-5
 */
export function takeServerLock(dataDir: string): Taken {
  const path = join(dataDir, announcementName)
  const database = lockedIn(dataDir)
  if (!database) return { heldBy: readAnnouncement(dataDir) }
  return {
    lock: {
      announce(announcement) {
        try {
          writePrivately(path, `${JSON.stringify(announcement)}\n`)
        } catch (error) {
          throw unwritable(error)
        }
      },
      release() {
        try {
          rmSync(path, { force: true })
        } catch {
          // Without the lock nobody believes it.
        }
        if (database.open) database.close()
      },
    },
  }
}

/**
 * @returns undefined while another server holds the lock
 * @throws control_plane_unavailable  the data directory cannot be written
 */
function lockedIn(dataDir: string): Database.Database | undefined {
  let lock: Database.Database | undefined
  try {
    lock = holdExclusively(join(dataDir, lockName), patienceMs)
    if (lock) rmSync(join(dataDir, announcementName), { force: true })
    return lock
  } catch (error) {
    lock?.close()
    throw unwritable(error)
  }
}

/**
 * The `wb serve` of a data directory, if one runs.
 *
 * Its announcement is believed only while the lock is held, when both files and the folder belong to this user and
 * nobody else can write them, and when the address is one that crosses no network in the clear: whoever could write it
 * would receive this user's credentials and documents. A link to the lock of another server is no lock of this one.
 *
 * @see docs/security.md#rule-6
 */
export function findServer(dataDir: string): Announcement | undefined {
  const announcement = readAnnouncement(dataDir)
  return announcement && isHeld(dataDir) ? announcement : undefined
}

/** Whether a server holds the lock. Takes a shared lock for a moment, which disturbs nobody. */
function isHeld(dataDir: string): boolean {
  const path = join(dataDir, lockName)
  const database = isPlainAndOurs(path) ? openForReading(path) : undefined
  if (!database) return false
  try {
    database.prepare('SELECT 1 FROM sqlite_schema').get()
    return false
  } catch (error) {
    return isBusy(error)
  } finally {
    database.close()
  }
}

function openForReading(path: string): Database.Database | undefined {
  try {
    return new Database(path, { readonly: true, fileMustExist: true, timeout: 0 })
  } catch {
    return undefined
  }
}

function readAnnouncement(dataDir: string): Announcement | undefined {
  const path = join(dataDir, announcementName)
  try {
    if (!isOurs(statSync(dataDir)) || !isPlainAndOurs(path)) return undefined
    const { url, pid, startedAt, certificate } = JSON.parse(
      readFileSync(path, 'utf8'),
    ) as Partial<Announcement>
    if (!isAddress(url) || !isProcessId(pid) || typeof startedAt !== 'string') return undefined
    return { url, pid, startedAt, certificate: typeof certificate === 'string' ? certificate : undefined }
  } catch {
    return undefined
  }
}

function isPlainAndOurs(path: string): boolean {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  return stats?.isFile() === true && isOurs(stats)
}

/** https, or http that ends on this machine: at loopback, or at an address of its own that a server was bound to. */
function isAddress(text: unknown): text is string {
  if (typeof text !== 'string' || !URL.canParse(text)) return false
  const url = new URL(text)
  return /^https?:$/.test(url.protocol) && (!isInTheClear(url) || isOwnAddress(url.hostname))
}

function isOwnAddress(hostname: string): boolean {
  const bare = hostname.replace(/^\[|\]$/g, '')
  return Object.values(networkInterfaces()).some(held => held?.some(({ address }) => address === bare))
}

/** A process of its own, and no group of them: it is told to people who then end it. */
function isProcessId(pid: unknown): pid is number {
  return Number.isSafeInteger(pid) && (pid as number) > 0
}
