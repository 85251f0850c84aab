import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Host } from '../base/threads.ts'
import type { CollectionKey, ContentStore } from '../storage/content.ts'
import type { PassageOps } from './passages.ts'

/** Below this many chunks a fitted space brings nothing over the placeholder. */
const fitRecordsMin = 10
/** Share of unfitted chunks at which a refit does not wait for quiet. */
const unfittedShareMax = 0.2
const quietMs = 2_000
const leaseMs = 120_000
const stageSlice = 512

export interface FitProgress {
  readonly label: string
  readonly done: number
  readonly total: number
}

type OnProgress = (step: FitProgress) => void

interface Parts {
  /** Stores whose collections can be fitted. */
  readonly store: ContentStore
  /** A thread of its own, as a fit takes seconds. */
  readonly host: Host<PassageOps>
  readonly clock: Clock
  readonly log: Log
  /** Tells the holder of a lease from others. */
  readonly owner: string
}

/** Keeps the fitted spaces up with what is ingested. */
export class Fitting {
  private readonly running = new Map<string, Promise<void>>()
  private readonly timers = new Map<string, () => void>()
  private checking = false
  private closed = false

  constructor(private readonly parts: Parts) {}

  isRunning(key: CollectionKey): boolean {
    return this.running.has(nameOf(key))
  }

  /** Note that a collection grew: fit at once when much is unfitted, else when ingest has been quiet. */
  grew(key: CollectionKey): void {
    if (this.closed) return
    const name = nameOf(key)
    this.timers.get(name)?.()
    this.timers.set(
      name,
      this.parts.clock.after(quietMs, () => this.catchUp(key, 0)),
    )
    if (!this.checking) this.catchUp(key, unfittedShareMax)
  }

  /** Collections of which something is unfitted and a fit pays. */
  async due(): Promise<(CollectionKey & { unfitted: number; records: number })[]> {
    const unfitted = (await this.parts.store.fitted?.unfitted()) ?? []
    return unfitted.filter(entry => entry.records >= fitRecordsMin)
  }

  /** Take up what an earlier process left. */
  async resume(): Promise<void> {
    for (const key of await this.due()) void this.run(key, () => {})
  }

  /** Fit all that is due, and wait for it. */
  async settle(signal: AbortSignal, onProgress: OnProgress): Promise<void> {
    await Promise.all(this.running.values())
    for (const key of await this.due()) {
      if (signal.aborted) return
      await this.run(key, onProgress)
    }
  }

  /** Start no more fits, and give those that run up; the store keeps the space in force. */
  async close(): Promise<void> {
    this.closed = true
    for (const cancel of this.timers.values()) cancel()
    await Promise.allSettled(this.running.values())
  }

  /** Fit when more than a share of the collection is unfitted, and look again after it. */
  private catchUp(key: CollectionKey, share: number): void {
    if (this.closed || this.isRunning(key)) return
    this.checking = true
    this.due()
      .finally(() => {
        this.checking = false
      })
      .then(async due => {
        const entry = due.find(other => nameOf(other) === nameOf(key))
        if (!entry || entry.unfitted <= entry.records * share || this.isRunning(key)) return
        await this.run(key, () => {})
        this.grew(key)
      })
      .catch(error =>
        this.parts.log.error({ collection: key.name, error }, 'looking for unfitted chunks failed'),
      )
  }

  private run(key: CollectionKey, onProgress: OnProgress): Promise<void> {
    const name = nameOf(key)
    const running = this.fit(key, onProgress)
      .catch(error => this.parts.log.error({ collection: key.name, error }, 'fit failed'))
      .finally(() => this.running.delete(name))
    this.running.set(name, running)
    return running
  }

  private async fit(key: CollectionKey, onProgress: OnProgress): Promise<void> {
    const { owner } = this.parts
    const spaces = this.parts.store.fitted
    if (!spaces || !(await spaces.lease(key, owner, leaseMs))) return
    try {
      const { records } = await this.parts.host.run('fit', key)
      for (let done = 0; !this.closed; ) {
        const staged = await this.parts.host.run('stage', { key, limit: stageSlice, owner })
        if (staged === false) return
        done += staged
        onProgress({ label: key.name, done, total: Math.max(records, done) })
        if (!(await spaces.lease(key, owner, leaseMs))) return
        if (staged === 0 && (await this.parts.host.run('swap', { key, owner }))) return
      }
    } finally {
      await spaces.release(key, owner)
    }
  }
}

function nameOf(key: CollectionKey): string {
  return `${key.workspaceId}/${key.name}`
}
