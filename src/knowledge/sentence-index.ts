import type { Clock } from '../base/clock.ts'
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
  type StoredPassage,
  type VectorSpaces,
} from '../storage/content.ts'
import type { FitProgress } from './fitting.ts'
import { type SentenceProgress, sentenceSpace, sentenceSpaceOf } from './sentence-space.ts'
import { toModelText } from './vector-space.ts'

/** The only generation of the space, because the model never changes. */
const generation = 1
/** Number of vectors that are computed, and then stored, at a time. They take about two seconds. */
const vectorsPerStep = 32
/** Duration of a lease: longer than one step, but short, so that another process can soon replace a crashed one. */
const leaseMs = 30_000
/** Pause before the next attempt if the model failed, or if another process has the lease. */
const retryMs = 10_000

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
 * Computes the sentence vectors of collections in the background, one collection at a time. Each step is stored, so work
 * continues where an earlier process ended.
 */
export class SentenceIndex {
  readonly #parts: SentenceIndexParts
  readonly #spaces: VectorSpaces | undefined
  readonly #due = new Map<string, CollectionKey>()
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
    this.#due.set(collectionKeyText(key), key)
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
    for (const key of await this.listDue()) {
      if (signal.aborted) return
      await this.#fill(key, signal, onProgress)
    }
  }

  /** Ends the current step without its result. */
  async close(): Promise<void> {
    this.#closing.abort()
    for (const cancel of this.#timers.values()) cancel()
    await this.#running
  }

  async #fillDue(): Promise<void> {
    for (const [name, key] of this.#due) {
      this.#due.delete(name)
      const isDone = await this.#fill(key, this.#closing.signal, () => {})
      if (!isDone) this.#retryLater(key)
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

  /** Computes the missing vectors of a collection. Returns false if there may be more to do later. */
  async #fill(
    key: CollectionKey,
    signal: AbortSignal,
    onProgress: (step: FitProgress) => void,
  ): Promise<boolean> {
    const { owner, log } = this.#parts
    const spaces = this.#spaces!
    try {
      if (!(await this.#parts.isEnabled(key))) return true
      const collection = await this.#openSpace(key)
      if (!collection) return true
      const space = sentenceSpaceOf(key)
      if (!(await spaces.lease(space, owner, leaseMs))) return false
      try {
        return await this.#fillLeased(space, collection, signal, onProgress)
      } finally {
        await spaces.release(space, owner)
      }
    } catch (error) {
      if (signal.aborted) return false
      const isCollectionMissing = error instanceof WbError && error.code === 'collection_unavailable'
      if (isCollectionMissing) return true
      log.error({ collection: key.name, error }, 'sentence vectors could not be computed')
      return false
    }
  }

  async #fillLeased(
    space: SpaceKey,
    { records, vectors: embedded }: Collection,
    signal: AbortSignal,
    onProgress: (step: FitProgress) => void,
  ): Promise<boolean> {
    const { owner } = this.#parts
    const spaces = this.#spaces!
    const label = `${space.name}: meaning`
    for (let done = embedded; !signal.aborted; ) {
      const passages = await spaces.unstaged(space, generation, vectorsPerStep)
      if (passages.length === 0) return true
      const vectors = await this.#embed(passages, signal)
      const [isStaged, isLeased] = await Promise.all([
        spaces.stage(space, { generation, owner }, vectors),
        spaces.renew(space, owner, leaseMs),
      ])
      if (!isStaged || !isLeased) return false
      done += vectors.length
      onProgress({ label, done, total: Math.max(records, done) })
    }
    return false
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

  /** Embeds passages. A passage without text gets a vector that is similar to nothing. */
  async #embed(passages: readonly StoredPassage[], signal: AbortSignal): Promise<RecordVector[]> {
    const texts = passages.map(toModelText)
    const withText = texts.filter(text => text.trim() !== '')
    const vectors = await this.#parts.model.embed(withText, { priority: 'background', signal })
    let next = 0
    return passages.map(({ record }, index) => ({
      record,
      vector: texts[index]!.trim() === '' ? new Float32Array(SENTENCE_DIMENSION) : vectors[next++]!,
    }))
  }
}
