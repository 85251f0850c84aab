import { WbError } from '../../contract/errors.ts'
import { isDiskFull } from '../disk-space.ts'
import type { SqliteConnection } from './connection.ts'
import { affectsWholeStore } from './faults.ts'

/** Maximum number of tasks in a commit. With more, other processes would wait too long for the write lock. */
const GROUP_TASKS_MAX = 256
const WAITING_TASKS_MAX = 10_000

/** Schedules a step to run just before COMMIT, after all tasks of the group. The step must not throw. */
export type DeferStep = (step: () => void) => void

/** Code that takes part in every commit, and applies the changes of all tasks of the commit together. */
export interface CommitParticipant {
  /** Called at the start of a transaction. Must discard all earlier changes, which may have been rolled back. */
  begin(): void
  /** Called after the last step. An error rolls the transaction back. */
  beforeCommit(): void
}

/** A set of writes that succeed or fail together. Runs synchronously, inside a savepoint. */
export interface WriteTask<T> {
  run(defer: DeferStep): T
  /** Returns true to keep the task's writes, and false to roll them back. */
  shouldCommit(result: T): boolean
}

interface WaitingTask {
  readonly task: WriteTask<unknown>
  resolve(result: unknown): void
  reject(error: unknown): void
}

/**
 * Group commit: tasks that are waiting at the same time share one transaction and one disk sync.
 *
 * The promise of a task resolves after the commit. If a task throws, or if `shouldCommit` returns false, only its
 * writes are rolled back. An error that affects the whole store rolls back and rejects the whole group.
 */
export class CommitQueue {
  readonly #connection: SqliteConnection
  readonly #participants: readonly CommitParticipant[]
  readonly #waiting: WaitingTask[] = []
  #draining: Promise<void> | undefined

  constructor(connection: SqliteConnection, participants: readonly CommitParticipant[] = []) {
    this.#connection = connection
    this.#participants = participants
  }

  /**
   * @throws control_plane_unavailable  too many tasks are waiting
   * @throws SqliteError  the commit failed
   */
  run<T>(task: WriteTask<T>): Promise<T> {
    if (this.#waiting.length >= WAITING_TASKS_MAX)
      throw new WbError('control_plane_unavailable', 'too many writes are waiting for the store')
    return new Promise<T>((resolve, reject) => {
      this.#waiting.push({ task, resolve, reject } as WaitingTask)
      this.#draining ??= this.#drain()
    })
  }

  async #drain(): Promise<void> {
    while (this.#waiting.length > 0) {
      // Wait, so that tasks added in the current iteration of the event loop join the group.
      await new Promise(setImmediate)
      const group = this.#waiting.splice(0, GROUP_TASKS_MAX)
      try {
        for (const settle of await this.#commitWithRetry(group)) settle()
      } catch (error) {
        for (const { reject } of group) reject(error)
      }
    }
    this.#draining = undefined
  }

  /**
   * Commits a group in one transaction. If the disk is full, truncates the log and retries once, because the freed
   * space may be enough to commit a deletion.
   */
  async #commitWithRetry(group: readonly WaitingTask[]): Promise<(() => void)[]> {
    try {
      return await this.#commitInTransaction(group)
    } catch (error) {
      if (!isDiskFull(error) || !this.#connection.truncateLog()) throw error
      return this.#commitInTransaction(group)
    }
  }

  async #commitInTransaction(group: readonly WaitingTask[]): Promise<(() => void)[]> {
    try {
      await this.#connection.begin()
      return this.#commit(group)
    } finally {
      this.#connection.rollback()
    }
  }

  /** Applies and commits a group in the open transaction. Returns functions that settle the promises of its tasks. */
  #commit(group: readonly WaitingTask[]): (() => void)[] {
    const steps: (() => void)[] = []
    for (const participant of this.#participants) participant.begin()
    const settlements = group.map(waiting => this.#apply(waiting, steps))
    // These steps run last, because a full-text table writes a new index segment at every savepoint.
    for (const step of steps) step()
    for (const participant of this.#participants) participant.beforeCommit()
    this.#connection.prepare('COMMIT').run()
    return settlements
  }

  #apply({ task, resolve, reject }: WaitingTask, steps: (() => void)[]): () => void {
    const deferred: (() => void)[] = []
    this.#connection.prepare('SAVEPOINT task').run()
    try {
      const result = task.run(step => deferred.push(step))
      if (task.shouldCommit(result)) steps.push(...deferred)
      else this.#connection.prepare('ROLLBACK TO task').run()
      this.#connection.prepare('RELEASE task').run()
      return () => resolve(result)
    } catch (error) {
      if (affectsWholeStore(error)) throw error
      this.#connection.prepare('ROLLBACK TO task').run()
      this.#connection.prepare('RELEASE task').run()
      return () => reject(error)
    }
  }
}
