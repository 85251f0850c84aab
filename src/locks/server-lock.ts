import { lstatSync, readFileSync, rmSync, statSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { isUnencryptedRemote } from '../base/loopback.ts'
import { isOwnedAndUnshared, writePrivateFile } from '../base/private-file.ts'
import { isBusy } from '../storage/sqlite/connection.ts'
import Database from '../storage/sqlite/driver.ts'
import { unwritableFolder } from '../storage/sqlite/faults.ts'
import { holdExclusively } from './exclusive-lock.ts'

/** Address and process of the running `wb serve` of a data directory. */
export interface Announcement {
  url: string
  pid: number
  startedAt: string
  /** PEM certificate of an https address, to trust for this connection. */
  certificate?: string
}

/** Lock of a data directory, held until it is released or the process ends. */
export interface ServerLock {
  /** Publishes the address, so that commands find this server. */
  announce(announcement: Announcement): void
  release(): void
}

export type LockResult = { lock: ServerLock } | { heldBy: Announcement | undefined }

const lockName = 'serve.lock'
const announcementName = 'serve.json'
/** Time to wait for the lock. Checks hold it for microseconds only. */
const patienceMs = 250

/**
 * Takes the lock of a data directory, so that only one server runs on it.
 *
 * @returns the lock, or the announcement of the server that holds it (undefined while it is starting)
 * @throws control_plane_unavailable  the data directory cannot be written; `announce` throws it too
 * @see docs/security.md#rule-5
 */
export function takeServerLock(dataDir: string): LockResult {
  const path = join(dataDir, announcementName)
  const database = lockDataDir(dataDir)
  if (!database) return { heldBy: readAnnouncement(dataDir) }
  return {
    lock: {
      announce(announcement) {
        try {
          writePrivateFile(path, `${JSON.stringify(announcement)}\n`)
        } catch (error) {
          throw unwritableFolder(error)
        }
      },
      release() {
        try {
          rmSync(path, { force: true })
        } catch {
          // Clients ignore the announcement when the lock is not held.
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
function lockDataDir(dataDir: string): Database.Database | undefined {
  let lock: Database.Database | undefined
  try {
    lock = holdExclusively(join(dataDir, lockName), patienceMs)
    if (lock) rmSync(join(dataDir, announcementName), { force: true })
    return lock
  } catch (error) {
    lock?.close()
    throw unwritableFolder(error)
  }
}

/**
 * Returns the announcement of the running `wb serve` of a data directory, if there is one.
 *
 * The announcement is trusted only if the lock is held, if both files and the folder belong to this user and
 * only this user can write them, and if the address does not send data unencrypted over a network. Otherwise,
 * another user who can write the file could receive this user's credentials and documents. A symbolic link to
 * the lock of another server is not accepted.
 *
 * @see docs/security.md#rule-6
 */
export function findServer(dataDir: string): Announcement | undefined {
  const announcement = readAnnouncement(dataDir)
  return announcement && isHeld(dataDir) ? announcement : undefined
}

/** Returns true if a server holds the lock. Takes a shared lock for a moment. */
function isHeld(dataDir: string): boolean {
  const path = join(dataDir, lockName)
  const database = isOwnRegularFile(path) ? openForReading(path) : undefined
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
    if (!isOwnedAndUnshared(statSync(dataDir)) || !isOwnRegularFile(path)) return undefined
    const { url, pid, startedAt, certificate } = JSON.parse(
      readFileSync(path, 'utf8'),
    ) as Partial<Announcement>
    if (!isAddress(url) || !isProcessId(pid) || typeof startedAt !== 'string') return undefined
    return { url, pid, startedAt, certificate: typeof certificate === 'string' ? certificate : undefined }
  } catch {
    return undefined
  }
}

function isOwnRegularFile(path: string): boolean {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  return stats?.isFile() === true && isOwnedAndUnshared(stats)
}

/**
 * Returns true for https, and for http to this machine: to loopback or to an address of a network interface.
 */
function isAddress(text: unknown): text is string {
  if (typeof text !== 'string' || !URL.canParse(text)) return false
  const url = new URL(text)
  return /^https?:$/.test(url.protocol) && (!isUnencryptedRemote(url) || isOwnAddress(url.hostname))
}

function isOwnAddress(hostname: string): boolean {
  const bare = hostname.replace(/^\[|\]$/g, '')
  return Object.values(networkInterfaces()).some(held => held?.some(({ address }) => address === bare))
}

/**
 * Returns true for the id of a single process. Users may kill it, and 0 or a negative id is a process group.
 */
function isProcessId(pid: unknown): pid is number {
  return Number.isSafeInteger(pid) && (pid as number) > 0
}
