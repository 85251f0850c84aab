import { WbError } from '../../contract/errors.ts'
import { isDiskFull } from '../disk-space.ts'
import type { Connection } from './connection.ts'
import { isOfStore } from './faults.ts'

/** Units of one commit; more would make others wait long for the write lock. */
const GROUP_UNITS_MAX = 256
const WAITING_UNITS_MAX = 10_000

/** Put off a step that cannot be refused to the end of the commit. */
export type Later = (step: () => void) => void

/** A piece of writing: runs in one go, inside a savepoint of its own. */
export interface Unit<T> {
  run(later: Later): T
  /** Whether the result stands; else the unit's writes are undone. */
  keeps(result: T): boolean
}

interface Waiting {
  readonly unit: Unit<unknown>
  resolve(result: unknown): void
  reject(error: unknown): void
}

/**
 * Group commit: units that wait at the same time share one transaction, and one wait for the disk.
 *
 * A promise resolves after the commit. A unit that is refused or throws undoes its own writes only.
 */
export class CommitQueue {
  readonly #connection: Connection
  readonly #waiting: Waiting[] = []
  #draining: Promise<void> | undefined

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** @throws control_plane_unavailable  the commit failed, or too many units wait */
  run<T>(unit: Unit<T>): Promise<T> {
    if (this.#waiting.length >= WAITING_UNITS_MAX)
      throw new WbError('control_plane_unavailable', 'too many writes wait for the store')
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ unit, resolve, reject } as Waiting)
      this.#draining ??= this.#drain()
    })
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      // What is asked in this turn of the event loop joins the group.
      await new Promise(setImmediate)
      const group = this.#waiting.splice(0, GROUP_UNITS_MAX)
      try {
        for (const settle of await this.#inTransaction(group)) settle()
      } catch (error) {
        for (const { reject } of group) reject(error)
      }
    }
    this.#draining = undefined
  }

  /** On a full disk, the log may take up space that a checkpoint gives back: enough to delete something. */
  async #inTransaction(group: readonly Waiting[]): Promise<(() => void)[]> {
    try {
      return await this.#attempt(group)
    } catch (error) {
      if (!isDiskFull(error) || !this.#connection.cutLog()) throw error
      return this.#attempt(group)
    }
  }

  async #attempt(group: readonly Waiting[]): Promise<(() => void)[]> {
    try {
      await this.#connection.begin()
      return this.#commit(group)
    } finally {
      this.#connection.rollback()
    }
  }

  /** Apply a group in the open transaction; what tells its callers the results. */
  #commit(group: readonly Waiting[]): (() => void)[] {
    const steps: (() => void)[] = []
    const settlements = group.map(waiting => this.#apply(waiting, steps))
    // Last, because every savepoint makes a full-text table write out a segment of its own.
    for (const step of steps) step()
    this.#connection.prepare('COMMIT').run()
    return settlements
  }

  #apply({ unit, resolve, reject }: Waiting, steps: (() => void)[]): () => void {
    const own: (() => void)[] = []
    this.#connection.prepare('SAVEPOINT unit').run()
    try {
      const result = unit.run(step => own.push(step))
      if (unit.keeps(result)) steps.push(...own)
      else this.#connection.prepare('ROLLBACK TO unit').run()
      this.#connection.prepare('RELEASE unit').run()
      return () => resolve(result)
    } catch (error) {
      if (isOfStore(error)) throw error
      this.#connection.prepare('ROLLBACK TO unit').run()
      this.#connection.prepare('RELEASE unit').run()
      return () => reject(error)
    }
  }
}
