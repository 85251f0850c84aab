import { WbError } from '../../contract/errors.ts'
import { isDiskFull } from '../disk-space.ts'
import type { SqliteConnection } from './connection.ts'
import { concernsStore } from './faults.ts'

/** Maximum number of units in a commit; more would make other processes wait long for the write lock. */
const GROUP_UNITS_MAX = 256
const WAITING_UNITS_MAX = 10_000

/** Defers a step that cannot fail to the end of the commit. */
export type DeferStep = (step: () => void) => void

/** A piece of writing, which runs synchronously inside its own savepoint. */
export interface CommitUnit<T> {
  run(later: DeferStep): T
  /** Returns true to keep the unit's writes, and false to roll them back. */
  shouldCommit(result: T): boolean
}

interface WaitingUnit {
  readonly unit: CommitUnit<unknown>
  resolve(result: unknown): void
  reject(error: unknown): void
}

/**
 * Group commit: units that wait at the same time share one transaction and one sync of the disk.
 *
 * A promise resolves after the commit. A unit that fails or throws rolls back its own writes only.
 */
export class CommitQueue {
  readonly #connection: SqliteConnection
  readonly #waiting: WaitingUnit[] = []
  #draining: Promise<void> | undefined

  constructor(connection: SqliteConnection) {
    this.#connection = connection
  }

  /** @throws control_plane_unavailable  the commit failed, or too many units are waiting */
  run<T>(unit: CommitUnit<T>): Promise<T> {
    if (this.#waiting.length >= WAITING_UNITS_MAX)
      throw new WbError('control_plane_unavailable', 'too many writes wait for the store')
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ unit, resolve, reject } as WaitingUnit)
      this.#draining ??= this.#drain()
    })
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      // Calls of the current turn of the event loop join the group.
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

  /**
   * Retries after a checkpoint if the disk is full: the space of the log may be enough to delete something.
   */
  async #inTransaction(group: readonly WaitingUnit[]): Promise<(() => void)[]> {
    try {
      return await this.#commitInTransaction(group)
    } catch (error) {
      if (!isDiskFull(error) || !this.#connection.cutLog()) throw error
      return this.#commitInTransaction(group)
    }
  }

  async #commitInTransaction(group: readonly WaitingUnit[]): Promise<(() => void)[]> {
    try {
      await this.#connection.begin()
      return this.#commit(group)
    } finally {
      this.#connection.rollback()
    }
  }

  /** Applies a group in the open transaction; returns functions that settle the promises of its units. */
  #commit(group: readonly WaitingUnit[]): (() => void)[] {
    const steps: (() => void)[] = []
    const settlements = group.map(waiting => this.#apply(waiting, steps))
    // Deferred, because a full-text table writes a new segment at every savepoint.
    for (const step of steps) step()
    this.#connection.prepare('COMMIT').run()
    return settlements
  }

  #apply({ unit, resolve, reject }: WaitingUnit, steps: (() => void)[]): () => void {
    const own: (() => void)[] = []
    this.#connection.prepare('SAVEPOINT unit').run()
    try {
      const result = unit.run(step => own.push(step))
      if (unit.shouldCommit(result)) steps.push(...own)
      else this.#connection.prepare('ROLLBACK TO unit').run()
      this.#connection.prepare('RELEASE unit').run()
      return () => resolve(result)
    } catch (error) {
      if (concernsStore(error)) throw error
      this.#connection.prepare('ROLLBACK TO unit').run()
      this.#connection.prepare('RELEASE unit').run()
      return () => reject(error)
    }
  }
}
