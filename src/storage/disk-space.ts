import { open, rm, statfs } from 'node:fs/promises'
import { join } from 'node:path'
import { randomHex } from '../base/id.ts'
import type { OperationHost, ThreadOperations } from '../base/threads.ts'
import { WbError } from '../contract/errors.ts'

const diskFullCodes: ReadonlySet<unknown> = new Set([
  'ENOSPC',
  'EDQUOT',
  'SQLITE_FULL',
  'SQLITE_IOERR_SHMSIZE',
])

/** Returns true for a failure that comes from a full disk, or from a quota that is used up. */
export function isDiskFull(error: unknown): boolean {
  for (let cause = error; cause instanceof Error; cause = cause.cause) {
    const code = cause instanceof WbError ? cause.facts.sqlite : 'code' in cause ? cause.code : undefined
    if (diskFullCodes.has(code)) return true
  }
  return false
}

/**
 * Creates the error for a full disk.
 *
 * @param cause  goes to the log, like `facts`
 */
export function diskFull(cause?: unknown, facts: Record<string, unknown> = {}): WbError {
  return new WbError(
    'control_plane_unavailable',
    'the disk of the data directory is full',
    {
      hint: 'Free some space on that disk, then try again. Deleting needs a little space too. A server continues by itself.',
      ...facts,
    },
    { cause },
  )
}

/** Minimum free space in bytes: enough for a document and its log. */
const SPACE_BYTES_MIN = 1_048_576
const CHUNK_BYTES = 65_536

/** Access to the disk of a store. */
export interface Disk {
  /** Bytes that this user can still write; infinite where the system does not report it. */
  freeBytes(folder: string): Promise<number>
  /** Allocates space and gives it back. @throws the error of the system */
  allocate(folder: string, bytes: number): Promise<void>
}

/** Free space of a store: observes its writes, and queries the disk when necessary. */
export class DiskSpace {
  readonly #folder: string
  readonly #disk: Disk
  #isWriteRefused = false

  constructor(folder: string, disk: Disk = systemDisk) {
    this.#folder = folder
    this.#disk = disk
  }

  /** Wraps the host of the writes to observe the outcome of each write. */
  observed<O extends ThreadOperations>(writes: OperationHost<O>): OperationHost<O> {
    return {
      ...writes,
      run: async (name, input, transfer) => {
        try {
          const outcome = await writes.run(name, input, transfer)
          this.#isWriteRefused = false
          return outcome as never
        } catch (error) {
          if (isDiskFull(error)) this.#isWriteRefused = true
          throw error
        }
      },
    }
  }

  /**
   * Allocates space only when the last write was refused, or when the system reports that the disk is nearly full.
   *
   * @throws control_plane_unavailable  the disk is full
   */
  async require(): Promise<void> {
    if (!this.#isWriteRefused && (await this.#disk.freeBytes(this.#folder)) >= SPACE_BYTES_MIN) return
    try {
      await this.#disk.allocate(this.#folder, SPACE_BYTES_MIN)
      this.#isWriteRefused = false
    } catch (error) {
      if (isDiskFull(error)) throw diskFull(error)
    }
  }
}

const systemDisk: Disk = {
  async freeBytes(folder) {
    try {
      const { bavail, bsize } = await statfs(folder)
      return bavail * bsize
    } catch {
      return Number.POSITIVE_INFINITY
    }
  },
  async allocate(folder, bytes) {
    const path = join(folder, `space-${process.pid}-${randomHex(4)}`)
    const file = await open(path, 'wx', 0o600)
    try {
      // A killed process leaves no file behind, on systems where an open file can be removed.
      await rm(path).catch(() => {})
      for (let written = 0; written < bytes; written += CHUNK_BYTES)
        await file.write(Buffer.alloc(CHUNK_BYTES), 0, CHUNK_BYTES)
    } finally {
      await file.close()
      await rm(path, { force: true })
    }
  },
}
