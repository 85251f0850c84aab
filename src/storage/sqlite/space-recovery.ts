import { type Clock, systemClock } from '../../base/clock.ts'
import type { StoreFile } from '../content.ts'
import type { CommitQueue } from './commit-queue.ts'
import type { SqliteConnection } from './connection.ts'
import { readFileSpace, shrinkFile } from './file-space.ts'
import { hasMaintenanceWork } from './store-maintenance.ts'

/** Time without writes after which the file can shrink. Writes and merges use free space again. */
export const IDLE_MS = 10_000
/** The file shrinks if more than this part of it is free. */
const FREE_SHARE_MAX = 0.2
const FREE_BYTES_MIN = 4 * 1024 * 1024

/** Gives free space of the file back to the disk in the background, in short transactions while nothing is written. */
export class SpaceRecovery {
  readonly #connection: SqliteConnection
  readonly #queue: CommitQueue
  readonly #clock: Clock
  #isStarted = false
  #running: Promise<void> | undefined
  /** Version of the store at the last check. Changes with every commit of another connection. */
  #dataVersion = -1
  #cancelTimer: (() => void) | undefined

  constructor(connection: SqliteConnection, queue: CommitQueue, clock: Clock = systemClock) {
    this.#connection = connection
    this.#queue = queue
    this.#clock = clock
  }

  start(): void {
    this.#isStarted = true
    this.wake()
  }

  /** Call it after every write. Does nothing before {@link start}. */
  wake(): void {
    if (!this.#isStarted) return
    this.#cancelTimer?.()
    this.#cancelTimer = this.#clock.after(IDLE_MS, () => {
      this.#cancelTimer = undefined
      this.#running ??= this.#run().finally(() => {
        this.#running = undefined
      })
    })
  }

  /** Ends after the current step. */
  async close(): Promise<void> {
    this.#isStarted = false
    this.#cancelTimer?.()
    await this.#running
  }

  async #run(): Promise<void> {
    try {
      if (this.#hasOtherWriter() || hasMaintenanceWork(this.#connection)) return this.wake()
      let space = readFileSpace(this.#connection)
      if (!isWorthwhile(space)) return
      while (space.freeBytes > 0) {
        // A write starts the timer again, and the rest is given back later.
        if (!this.#isStarted || this.#cancelTimer) return
        if (this.#hasOtherWriter()) return this.wake()
        await this.#queue.run({ run: () => shrinkFile(this.#connection), shouldCommit: () => true })
        space = readFileSpace(this.#connection)
      }
      this.#connection.truncateLog()
    } catch {
      // Nothing depends on this work. It is tried again after the next write.
    }
  }

  /** Returns true if another connection has written since the last check. The first check also returns true. */
  #hasOtherWriter(): boolean {
    const before = this.#dataVersion
    this.#dataVersion = this.#connection
      .prepare<{ version: number }>('SELECT data_version AS version FROM pragma_data_version')
      .get()!.version
    return this.#dataVersion !== before
  }
}

function isWorthwhile({ bytes, freeBytes, canShrink }: StoreFile): boolean {
  return canShrink && freeBytes >= FREE_BYTES_MIN && freeBytes > FREE_SHARE_MAX * bytes
}
