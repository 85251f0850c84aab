import { lstatSync, readFileSync, rmSync, statSync } from 'node:fs'
import { networkInterfaces } from 'node:os'
import { join } from 'node:path'
import { isUnencryptedRemote } from '../base/loopback.ts'
import { isOwnedAndUnshared, writePrivateFile } from '../base/private-file.ts'
import type { FileLock } from '../storage/file-locks.ts'
import { fileLocks } from '../storage/open.ts'
import { unwritableFolder } from '../storage/unwritable-folder.ts'
import { acquireExclusiveLock } from './exclusive-lock.ts'

/** Address and process of the running `wb serve` of a data directory. */
export interface Announcement {
  url: string
  pid: number
  startedAt: string
  /** PEM certificate that commands trust for connections to this address. */
  certificate?: string
}

/** The lock of a data directory. It is held until it is released or the process ends. */
export interface ServerLock {
  /** Publishes the address of this server for commands. @throws control_plane_unavailable */
  announce(announcement: Announcement): void
  release(): void
}

export type LockResult = { lock: ServerLock } | { heldBy: Announcement | undefined }

const lockName = 'serve.lock'
const announcementName = 'serve.json'
/** Time to wait for the lock. A check for a running server holds the lock only for microseconds. */
const lockTimeoutMs = 250

/**
 * Acquires the lock of a data directory, which ensures that only one server uses the directory.
 *
 * @returns the lock, or the announcement of the server that holds it (undefined while that server is starting)
 * @throws control_plane_unavailable  the data directory cannot be written
 * @see docs/security.md#rule-5
 */
export function acquireServerLock(dataDir: string): LockResult {
  const path = join(dataDir, announcementName)
  const fileLock = lockDataDir(dataDir)
  if (!fileLock) return { heldBy: readAnnouncement(dataDir) }
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
          // Commands ignore the announcement if no server holds the lock.
        }
        fileLock.close()
      },
    },
  }
}

/**
 * @returns undefined while another server holds the lock
 * @throws control_plane_unavailable  the data directory cannot be written
 */
function lockDataDir(dataDir: string): FileLock | undefined {
  let lock: FileLock | undefined
  try {
    lock = acquireExclusiveLock(join(dataDir, lockName), lockTimeoutMs)
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
 * The announcement is trusted only if the lock is held, if both files and the folder belong to this user and only
 * this user can write to them, and if requests to the address are not sent unencrypted over a network. Without these
 * checks, another user who can write the file could receive this user's credentials and documents. The lock must not be
 * a symbolic link, because that could refer to the lock of another server.
 *
 * @see docs/security.md#rule-6
 */
export function findServer(dataDir: string): Announcement | undefined {
  const announcement = readAnnouncement(dataDir)
  return announcement && isLockHeld(dataDir) ? announcement : undefined
}

/** Returns true if a server holds the lock. If no server holds it, this check briefly acquires a shared lock. */
function isLockHeld(dataDir: string): boolean {
  const path = join(dataDir, lockName)
  return isOwnRegularFile(path) && fileLocks.isHeld(path)
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
 * Returns true for an https address, and for an http address on this machine: a loopback address, or the address of
 * a network interface.
 */
function isAddress(text: unknown): text is string {
  if (typeof text !== 'string' || !URL.canParse(text)) return false
  const url = new URL(text)
  return /^https?:$/.test(url.protocol) && (!isUnencryptedRemote(url) || isLocalAddress(url.hostname))
}

function isLocalAddress(hostname: string): boolean {
  const bareHost = hostname.replace(/^\[|\]$/g, '')
  return Object.values(networkInterfaces()).some(addresses =>
    addresses?.some(({ address }) => address === bareHost),
  )
}

/**
 * Returns true for a positive integer. The ID is used in suggested commands such as `kill 4711`, where 0 or a negative
 * number would refer to a process group.
 */
function isProcessId(pid: unknown): pid is number {
  return Number.isSafeInteger(pid) && (pid as number) > 0
}
