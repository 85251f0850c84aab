import type { Clock } from '../base/clock.ts'
import { FairQueue } from '../base/fair-queue.ts'
import type { Log } from '../base/log.ts'
import { WbError } from '../contract/errors.ts'
import { SENTENCE_DIMENSION } from '../sentence-model/sentence-encoder.ts'
import type { SentenceModel } from '../sentence-model/sentence-model.ts'
import {
  type Collection,
  type CollectionKey,
  type ContentStore,
  collectionKeyText,
  type RecordVector,
  type SpaceKey,
  type UnstagedPassage,
  type VectorSpaces,
} from '../storage/content.ts'
import type { FitProgress } from './fitting.ts'
import { type SentenceProgress, sentenceSpace, sentenceSpaceOf } from './sentence-space.ts'
import { toModelText } from './vector-space.ts'

/** The only generation of the space, because the model never changes. */
const generation = 1
/** Number of vectors that are computed, and then stored, at a time. They take about two seconds. */
const vectorsPerStep = 32
/** Duration of a lease: much longer than one step, but short, so that another process can soon replace a crashed one. */
const leaseMs = 60_000
/** Pause before the next attempt if the model failed, or if another process has the lease. */
const retryMs = 10_000

/** Result of a step: all vectors are there, or there may be more to compute, now or later. */
type StepResult = 'filled' | 'more' | 'retry'

export interface SentenceIndexParts {
  readonly store: ContentStore
  readonly model: Pick<SentenceModel, 'embed'>
  readonly clock: Clock
  readonly log: Log
  /** Identifies this process as the owner of leases. */
  readonly owner: string
  /** Returns true if a collection is to have sentence vectors. */
  readonly isEnabled: (key: CollectionKey) => Promise<boolean>
}

/**
 * Computes the sentence vectors of collections in the background, in steps. The steps of collections take turns, by workspace
 * first, so a large ingest does not delay other workspaces. Each step is stored, so work continues where an earlier process ended.
 */
export class SentenceIndex {
  readonly #parts: SentenceIndexParts
  readonly #spaces: VectorSpaces | undefined
  readonly #due = new FairQueue<CollectionKey>()
  readonly #timers = new Map<string, () => void>()
  readonly #closing = new AbortController()
  #running: Promise<void> | undefined

  constructor(parts: SentenceIndexParts) {
    this.#parts = parts
    this.#spaces = parts.store.spaces
  }

  /** Call this when a collection has new records. */
  onGrowth(key: CollectionKey): void {
    if (!this.#spaces || this.#closing.signal.aborted) return
    if (this.#due.count(key.workspaceId, key.name) === 0) this.#due.add(key.workspaceId, key.name, key)
    this.#running ??= this.#fillDue().finally(() => {
      this.#running = undefined
    })
  }

  /** Continues what an earlier process has not finished. */
  async resume(): Promise<void> {
    for (const key of await this.listDue()) this.onGrowth(key)
  }

  /** Returns the collections with records that have no sentence vector. */
  async listDue(): Promise<CollectionKey[]> {
    const due: CollectionKey[] = []
    for (const key of (await this.#spaces?.unfilled(sentenceSpace)) ?? [])
      if (await this.#parts.isEnabled(key)) due.push(key)
    return due
  }

  /** Returns how many records of a collection have a sentence vector. */
  async progress(key: CollectionKey): Promise<SentenceProgress | undefined> {
    if (!this.#spaces || !(await this.#parts.isEnabled(key))) return undefined
    const [collection, space] = await Promise.all([
      this.#parts.store.collection(key),
      this.#parts.store.collection(sentenceSpaceOf(key)),
    ])
    return collection && { records: collection.records, embedded: space?.vectors ?? 0 }
  }

  /** Computes all vectors that are missing, and waits for them. */
  async settle(signal: AbortSignal, onProgress: (step: FitProgress) => void): Promise<void> {
    await this.#running
    for (const key of await this.listDue())
      while (!signal.aborted && (await this.#fillStep(key, signal, onProgress)) === 'more');
  }

  /** Ends the current step without its result. */
  async close(): Promise<void> {
    this.#closing.abort()
    for (const cancel of this.#timers.values()) cancel()
    await this.#running
  }

  async #fillDue(): Promise<void> {
    const { signal } = this.#closing
    for (let key = this.#due.take(); key; key = this.#due.take()) {
      const result = await this.#fillStep(key, signal, () => {})
      if (result === 'more') this.onGrowth(key)
      if (result === 'retry') this.#retryLater(key)
    }
  }

  #retryLater(key: CollectionKey): void {
    if (this.#closing.signal.aborted) return
    const name = collectionKeyText(key)
    this.#timers.get(name)?.()
    this.#timers.set(
      name,
      this.#parts.clock.after(retryMs, () => {
        this.#timers.delete(name)
        this.onGrowth(key)
      }),
    )
  }

  /** Computes some of the missing vectors of a collection. */
  async #fillStep(
    key: CollectionKey,
    signal: AbortSignal,
    onProgress: (step: FitProgress) => void,
  ): Promise<StepResult> {
    const { owner, log } = this.#parts
    const spaces = this.#spaces!
    try {
      if (!(await this.#parts.isEnabled(key))) return 'filled'
      const collection = await this.#openSpace(key)
      if (!collection) return 'filled'
      const space = sentenceSpaceOf(key)
      if (!(await spaces.lease(space, owner, leaseMs))) return 'retry'
      try {
        return await this.#fillLeased(space, collection, signal, onProgress)
      } finally {
        await spaces.release(space, owner)
      }
    } catch (error) {
      if (signal.aborted) return 'retry'
      const isCollectionMissing = error instanceof WbError && error.code === 'collection_unavailable'
      if (isCollectionMissing) return 'filled'
      log.error({ collection: key.name, error }, 'sentence vectors could not be computed')
      return 'retry'
    }
  }

  async #fillLeased(
    space: SpaceKey,
    { records, vectors: embedded }: Collection,
    signal: AbortSignal,
    onProgress: (step: FitProgress) => void,
  ): Promise<StepResult> {
    const { owner } = this.#parts
    const spaces = this.#spaces!
    const passages = await spaces.unstaged(space, generation, vectorsPerStep)
    if (passages.length === 0) return 'filled'
    const vectors = await this.#embed(passages, signal)
    const isStaged = await spaces.stage(space, { generation, owner }, vectors)
    if (!isStaged) return 'retry'
    const done = embedded + vectors.length
    onProgress({ label: `${space.name}: search by meaning`, done, total: Math.max(records, done) })
    return 'more'
  }

  /** Returns the space of a collection, which is created if it is missing; undefined if the collection is missing. */
  async #openSpace(key: CollectionKey): Promise<Collection | undefined> {
    const { store } = this.#parts
    const space = sentenceSpaceOf(key)
    const existing = await store.collection(space)
    if (existing) return existing
    const settings = { dimension: SENTENCE_DIMENSION, metric: 'cosine', isSearchable: true } as const
    await store.write([{ op: 'createSpace', ...key, space: sentenceSpace, ...settings }], [])
    return store.collection(space)
  }

  /** Embeds passages that have no vector yet. A passage without text gets a vector that is similar to nothing. */
  async #embed(passages: readonly UnstagedPassage[], signal: AbortSignal): Promise<RecordVector[]> {
    const known = passages.map(passage => {
      const isEmpty = toModelText(passage).trim() === ''
      return passage.vector ?? (isEmpty ? new Float32Array(SENTENCE_DIMENSION) : undefined)
    })
    const texts = passages.filter((_, index) => !known[index]).map(toModelText)
    const vectors = await this.#parts.model.embed(texts, { priority: 'background', signal })
    let next = 0
    return passages.map(({ record }, index) => ({ record, vector: known[index] ?? vectors[next++]! }))
  }
}
