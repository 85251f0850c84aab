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

/** Returns true if a full disk or an exhausted disk quota caused the error. */
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
 * @param cause  logged together with `facts`
 */
export function diskFull(cause?: unknown, facts: Record<string, unknown> = {}): WbError {
  return new WbError(
    'control_plane_unavailable',
    'the disk of the data directory is full',
    {
      hint: 'Free some space on that disk, then try again. Deleting data from Workbase also needs some space. You do not need to restart the server.',
      ...facts,
    },
    { cause },
  )
}

/** Minimum free space in bytes: enough to store a document, including the write-ahead log. */
const SPACE_BYTES_MIN = 1_048_576
const CHUNK_BYTES = 65_536

/** Access to the disk of a store. */
export interface Disk {
  /** Returns the number of bytes that this user can still write; infinity if the system does not report it. */
  freeBytes(folder: string): Promise<number>
  /** Allocates disk space and frees it again. @throws the error of the system */
  allocate(folder: string, bytes: number): Promise<void>
}

/** Detects a full disk: observes the outcomes of a store's writes, and checks the free space when necessary. */
export class DiskSpace {
  readonly #folder: string
  readonly #disk: Disk
  #didWriteFail = false

  constructor(folder: string, disk: Disk = systemDisk) {
    this.#folder = folder
    this.#disk = disk
  }

  /** Wraps the host that runs the writes, and observes the outcome of each write. */
  observe<O extends ThreadOperations>(writes: OperationHost<O>): OperationHost<O> {
    return {
      ...writes,
      run: async (name, input, transfer) => {
        try {
          const outcome = await writes.run(name, input, transfer)
          this.#didWriteFail = false
          return outcome as never
        } catch (error) {
          if (isDiskFull(error)) this.#didWriteFail = true
          throw error
        }
      },
    }
  }

  /**
   * Throws if the disk is full. Tests this by allocating space, but only if the disk was full during the last write, or
   * if the system reports that it is nearly full.
   *
   * @throws control_plane_unavailable  the disk is full
   */
  async require(): Promise<void> {
    if (!this.#didWriteFail && (await this.#disk.freeBytes(this.#folder)) >= SPACE_BYTES_MIN) return
    try {
      await this.#disk.allocate(this.#folder, SPACE_BYTES_MIN)
      this.#didWriteFail = false
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
      // On systems that can remove an open file, no file remains if the process is killed.
      await rm(path).catch(() => {})
      for (let written = 0; written < bytes; written += CHUNK_BYTES)
        await file.write(Buffer.alloc(CHUNK_BYTES), 0, CHUNK_BYTES)
    } finally {
      await file.close()
      await rm(path, { force: true })
    }
  },
}
