import pMap from 'p-map'
import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { OperationHost } from '../base/threads.ts'
import { WbError } from '../contract/errors.ts'
import { fitSampleMax } from '../models/lsa.ts'
import { type CollectionKey, type ContentStore, collectionKeyText } from '../storage/content.ts'
import type { Visibility } from '../storage/visibility.ts'
import type { PassageOperations } from './passage-operations.ts'

/** Minimum number of chunks for a fit. With fewer, a fitted space is not better than the placeholder. */
const fitRecordsMin = 10
/** Share of unfitted chunks above which a fit starts without waiting for ingest to pause. */
const growthShareMax = 0.5
/**
 * Maximum share of the time that fits of a collection take while it grows. Each fit computes the vectors of all chunks
 * again, so without a limit, fits would slow down a long ingest.
 */
const growthTimeShareMax = 0.1
/**
 * Share of unfitted chunks above which a fit starts after ingest has paused, in collections with more chunks than a fit
 * uses. With fewer unfitted chunks, a fit would hardly change the model. Smaller collections are always fitted.
 */
const pausedShareMax = 0.1
const quietPeriodMs = 2_000
/**
 * Duration of a lease: longer than one step of a fit, but short, so that another process can soon replace a crashed
 * one.
 */
const leaseMs = 30_000
/** Pause before the next check if a fit failed, or if another process is running it. */
const retryMs = 10_000
/**
 * Number of vectors in a step. Each step waits for a commit, and other commits add chunks in the meantime, so with small
 * steps a fit would not finish.
 */
const vectorsPerStep = 2_048
/** Maximum time for which writes wait for the last step of a fit. */
const writePauseMaxMs = 5_000

export interface FitProgress {
  readonly label: string
  readonly done: number
  readonly total: number
}

type OnProgress = (step: FitProgress) => void

interface FittingParts {
  /** Store with collections that can be fitted. */
  readonly store: ContentStore
  /** Host for fits, which runs on a separate thread in a server because a fit takes seconds. */
  readonly host: OperationHost<PassageOperations>
  readonly clock: Clock
  readonly log: Log
  /** Identifies this process as the owner of leases. */
  readonly owner: string
  /** Returns the rows of a collection that a model may learn from. */
  readonly learnableRows: (key: CollectionKey) => Promise<Visibility>
}

/**
 * `done`: the new space is current. `leased`: another process has the lease. `abandoned`: the fit did not finish.
 * `tooFew`: there are too few passages that a model may learn from.
 */
type FitOutcome = 'done' | 'leased' | 'abandoned' | 'tooFew'

/** See {@link Fitting.refitAfter}. */
export type RefitAfter = <T>(keys: readonly CollectionKey[], change: () => Promise<T>) => Promise<T>

/**
 * Refits the vector spaces of collections as they change. Only chunks that a model may learn from decide when: a fit changes
 * the scores of all callers, so its time must not reveal chunks that they may not see.
 */
export class Fitting {
  private readonly running = new Map<string, Promise<FitOutcome>>()
  private readonly checking = new Set<string>()
  private readonly timers = new Map<string, () => void>()
  private readonly writePauses = new Map<string, Promise<void>>()
  /** Counts at the last change, as text, of collections with records that a model may not learn from. */
  private readonly lastCounts = new Map<string, string>()
  /** Earliest times of the next fits of growing collections. */
  private readonly nextFits = new Map<string, number>()
  /** The last fit in the queue. Fits run one at a time, because each needs all passages of its collection in memory. */
  private last: Promise<unknown> = Promise.resolve()
  private resuming: Promise<void> | undefined
  private closed = false

  constructor(private readonly parts: FittingParts) {}

  isRunning(key: CollectionKey): boolean {
    return this.running.has(collectionKeyText(key))
  }

  /**
   * Call this when the records of a collection have changed. If the model may learn from some of them, fits it immediately if
   * many chunks are unfitted and the last fit was not recent, and otherwise when changes pause. Never rejects.
   */
  async onChange(key: CollectionKey): Promise<void> {
    try {
      if (!(await this.hasLearnableChange(key))) return
    } catch (error) {
      this.logFailedCheck(key, error)
    }
    this.scheduleCheck(key, quietPeriodMs)
    if (this.parts.clock.now() >= (this.nextFits.get(collectionKeyText(key)) ?? 0))
      this.fitIfDue(key, growthShareMax)
  }

  /** Returns true if records that a model may learn from may have changed since the last call. */
  private async hasLearnableChange(key: CollectionKey): Promise<boolean> {
    const visibility = await this.parts.learnableRows(key)
    if (!visibility.filter) return true
    const name = collectionKeyText(key)
    const counts = JSON.stringify(await this.parts.store.fitted?.fitCounts(key, visibility))
    if (counts === this.lastCounts.get(name)) return false
    this.lastCounts.set(name, counts)
    return true
  }

  /**
   * Resolves when chunks can be added to a collection. Before the last step of a fit, new chunks wait for a short time,
   * because the new space can become current only when each chunk has a vector in it.
   */
  async whenWritable(key: CollectionKey): Promise<void> {
    await this.writePauses.get(collectionKeyText(key))
  }

  /** Returns the collections for which a fit is due. */
  async listDue(): Promise<CollectionKey[]> {
    const keys = (await this.parts.store.fitted?.fittedCollections()) ?? []
    const check = (key: CollectionKey) => this.isDue(key, 0).catch(error => this.logFailedCheck(key, error))
    const due = await pMap(keys, check, { concurrency: 8 })
    return keys.filter((_, at) => due[at])
  }

  /**
   * Runs a change after which a model may no longer learn from some rows. From its start until the next fit, callers who
   * may not see all rows do not use the model, even if the process ends in between.
   */
  async refitAfter<T>(keys: readonly CollectionKey[], change: () => Promise<T>): Promise<T> {
    const invalidate = () => pMap(keys, key => this.parts.store.fitted?.invalidate(key), { concurrency: 8 })
    await invalidate()
    try {
      return await change()
    } finally {
      // Again, because a fit may have started before the change.
      await invalidate()
      for (const key of keys) this.fitIfDue(key, 0)
    }
  }

  /** Starts the fits that an earlier process did not finish. Does not wait, because counting learnable rows can take seconds. */
  resume(): void {
    this.resuming = this.listDue().then(
      keys => {
        for (const key of keys) this.fitIfDue(key, 0)
      },
      error => this.parts.log.error({ error }, 'unfinished fits were not continued'),
    )
  }

  /** Runs all fits that are due, and waits for them. */
  async settle(signal: AbortSignal, onProgress: OnProgress): Promise<void> {
    await Promise.all(this.running.values())
    for (const key of await this.listDue()) {
      if (signal.aborted) return
      await this.run(key, onProgress, signal)
    }
  }

  /** Prevents new fits, and abandons running fits. The current spaces stay in use. */
  async close(): Promise<void> {
    this.closed = true
    for (const cancel of this.timers.values()) cancel()
    await this.resuming
    await Promise.allSettled(this.running.values())
  }

  /** Checks a collection after a pause. Another call during the pause restarts the pause. */
  private scheduleCheck(key: CollectionKey, pauseMs: number): void {
    if (this.closed) return
    const name = collectionKeyText(key)
    this.timers.get(name)?.()
    const cancel = this.parts.clock.after(pauseMs, () => {
      this.timers.delete(name)
      this.fitIfDue(key, 0)
    })
    this.timers.set(name, cancel)
  }

  /** Starts a fit if more than the given share of the collection is unfitted. */
  private fitIfDue(key: CollectionKey, share: number): void {
    const name = collectionKeyText(key)
    if (this.closed || this.isRunning(key) || this.checking.has(name)) return
    this.checking.add(name)
    this.isDue(key, share)
      .finally(() => this.checking.delete(name))
      .then(isDue => {
        if (isDue && !this.closed && !this.isRunning(key)) return this.refitIfDue(key)
      })
      .catch(error => this.logFailedCheck(key, error))
  }

  /** Returns false, so that no fit starts. */
  private logFailedCheck({ name }: CollectionKey, error: unknown): boolean {
    if (!this.closed)
      this.parts.log.error({ collection: name, error }, 'the check for unfitted chunks failed')
    return false
  }

  /**
   * Returns true if a collection has enough chunks for a fit, enough unfitted chunks for another model, and more than the given
   * share of unfitted chunks.
   */
  private async isDue(key: CollectionKey, share: number): Promise<boolean> {
    // A knowledge base may have changed to another embedding service.
    if (!(await this.parts.store.collection(key))?.fitted) return false
    const counts = await this.parts.store.fitted?.fitCounts(key, await this.parts.learnableRows(key))
    if (!counts || counts.records < fitRecordsMin) return false
    const shareMin = counts.records <= fitSampleMax ? share : Math.max(share, pausedShareMax)
    return counts.unfitted > counts.records * shareMin
  }

  /** Runs a fit, and schedules the next check. Waits longer after a failure, because its cause is likely to persist. */
  private async refitIfDue(key: CollectionKey): Promise<void> {
    const startedAt = this.parts.clock.now()
    const outcome = await this.run(key, () => {})
    const endedAt = this.parts.clock.now()
    this.nextFits.set(collectionKeyText(key), endedAt + (endedAt - startedAt) * (1 / growthTimeShareMax - 1))
    if (outcome === 'done') await this.onChange(key)
    else if (outcome !== 'tooFew') this.scheduleCheck(key, retryMs)
  }

  private run(key: CollectionKey, onProgress: OnProgress, signal?: AbortSignal): Promise<FitOutcome> {
    const name = collectionKeyText(key)
    const running = this.last
      .then(() => this.fit(key, onProgress, signal))
      .catch(error => this.logFailure(key, error))
      .finally(() => this.running.delete(name))
    this.running.set(name, running)
    this.last = running
    return running
  }

  private logFailure(key: CollectionKey, error: unknown): FitOutcome {
    const isCollectionMissing = error instanceof WbError && error.code === 'collection_unavailable'
    if (!isCollectionMissing) this.parts.log.error({ collection: key.name, error }, 'fit failed')
    return 'abandoned'
  }

  private async fit(key: CollectionKey, onProgress: OnProgress, signal?: AbortSignal): Promise<FitOutcome> {
    const { owner, host } = this.parts
    const spaces = this.parts.store.fitted
    if (!spaces || this.closed) return 'abandoned'
    if (!(await spaces.lease(key, owner, leaseMs))) return 'leased'
    let resumeWrites: (() => void) | undefined
    try {
      const visibility = await this.parts.learnableRows(key)
      const fitted = await host.run('fit', { key, visibility, passagesMin: fitRecordsMin })
      if (!fitted) return 'tooFew'
      const { generation, records } = fitted
      const fit = { generation, owner }
      for (let done = 0; !this.closed && !signal?.aborted; ) {
        const vectors = await host.run('embedUnstaged', { key, limit: vectorsPerStep })
        if (!vectors) return 'abandoned'
        // Both share a commit. Calls `stage` even without vectors, to check that the owner still has the lease.
        const [isStaged, isLeased] = await Promise.all([
          spaces.stage(key, fit, vectors),
          spaces.renew(key, owner, leaseMs),
        ])
        if (!isStaged || !isLeased || this.closed) return 'abandoned'
        done += vectors.length
        onProgress({ label: key.name, done, total: Math.max(records, done) })
        if (vectors.length < vectorsPerStep) {
          const result = await host.run('candidate', key)
          if (result && (await spaces.swap(key, fit, result))) return 'done'
          resumeWrites ??= this.pauseWrites(key)
        }
      }
      return 'abandoned'
    } finally {
      resumeWrites?.()
      await spaces.release(key, owner)
    }
  }

  /** Returns a function that ends the pause. */
  private pauseWrites(key: CollectionKey): () => void {
    const name = collectionKeyText(key)
    let resume = () => {}
    const pause = new Promise<void>(resolve => {
      resume = resolve
    })
    this.writePauses.set(name, pause)
    const end = () => {
      cancelTimer()
      if (this.writePauses.get(name) === pause) this.writePauses.delete(name)
      resume()
    }
    const cancelTimer = this.parts.clock.after(writePauseMaxMs, end)
    return end
  }
}
