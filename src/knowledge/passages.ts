import { sha256 } from '../base/id.ts'
import type { Ops } from '../base/threads.ts'
import { isZero } from '../base/unit-vector.ts'
import { queryWords } from '../base/words.ts'
import type { Ingest } from '../contract/documents.ts'
import { fit, LsaModel, lsaDimension, type Passage } from '../models/lsa.ts'
import { placeholderEmbed } from '../models/placeholder.ts'
import type { Collection, CollectionKey, ContentStore, Fitted, FittedSpaces } from '../storage/content.ts'
import { damaged } from '../storage/damage.ts'
import { collectionMissing, fittedOf } from '../storage/missing.ts'
import { type ChunkerSettings, chunkerFor } from './chunk/index.ts'
import { extractNatively, type SentFile } from './parse/index.ts'

/** Vectors, and the generation of the space that they stand in. */
export interface Embedded {
  readonly generation: number
  readonly vectors: Float32Array[]
}

/** The vector of a query, and the generation of its space. */
export interface EmbeddedQuery {
  readonly generation: number
  readonly vector: Float32Array
  /** Words of the query that the space does not know, so the vector does not represent them. */
  readonly unknownWords: readonly string[]
}

/** Chunks of a text, and their vectors where the runtime makes those itself. */
export interface Prepared {
  readonly chunkerId: string
  readonly chunks: string[]
  readonly embedded: Embedded | undefined
}

/** Passages that are read at once while a model is fitted. */
const readSlice = 2_000

/**
 * The work on text that may take long: chunking, embedding in a fitted space, fitting one. It runs in a worker
 * thread of the server, and on the spot in a short command.
 */
export function passageOps(opening: Promise<ContentStore>) {
  const spaces = new Spaces(opening)
  return {
    hash: (text: string) => sha256(text),

    /** The text of a file. */
    extract: (file: SentFile) => extractNatively(file),

    /** Chunk a text, and embed the chunks where their space is fitted. */
    async prepare(input: {
      text: string
      title: string | null
      service: ChunkerSettings
      override: Ingest['chunker']
      fittedIn: CollectionKey | undefined
    }): Promise<Prepared> {
      const chunker = chunkerFor(input.service, input.override)
      const chunks = chunker.chunk(input.text)
      const passages = chunks.map(text => ({ title: input.title, text }))
      const embedded = input.fittedIn && (await spaces.embed(input.fittedIn, passages))
      return { chunkerId: chunker.id, chunks, embedded }
    },

    embed: (input: { key: CollectionKey; passages: readonly Passage[] }) =>
      spaces.embed(input.key, input.passages),

    embedQuery: (input: { key: CollectionKey; text: string }) => spaces.embedQuery(input.key, input.text),

    /** Fit a model on the passages of a collection and keep it as the candidate for the next generation. */
    fit: (key: CollectionKey) => spaces.fit(key),

    /** Embed up to `limit` records in the candidate: how many, or false when `owner` lost its lease. */
    stage: (input: Step & { limit: number }) => spaces.stage(input),

    /** Put the candidate in force; false while records lack a vector in it, or when `owner` lost its lease. */
    swap: (input: Step) => spaces.swap(input),
  } satisfies Ops
}

/** A step of a fit, by the holder of its lease. */
interface Step {
  readonly key: CollectionKey
  readonly owner: string
}

export type PassageOps = ReturnType<typeof passageOps>

/** A model that is not in force yet. */
interface Candidate {
  /** Collection that it was fitted on. */
  readonly collection: number
  readonly generation: number
  readonly model: LsaModel
  readonly fitted: Fitted
}

/** A model in force; undefined for a placeholder. */
interface InForce {
  readonly generation: number
  readonly model: LsaModel | undefined
}

/** Models that are kept in memory; one of 20,000 terms takes about 4 MB. */
const modelsMax = 32

/** Models by collection, kept while their generation is in force, and the one that is being fitted. */
class Spaces {
  private readonly models = new Map<number, InForce>()
  private candidate: Candidate | undefined

  constructor(private readonly opening: Promise<ContentStore>) {}

  async embed(key: CollectionKey, passages: readonly Passage[]): Promise<Embedded> {
    const { generation, model } = await this.current(key)
    return {
      generation,
      vectors: passages.map(passage => (model ? model.embed(passage) : placeholderEmbed(passage))),
    }
  }

  async embedQuery(key: CollectionKey, text: string): Promise<EmbeddedQuery> {
    const { generation, model } = await this.current(key)
    if (!model) return { generation, vector: placeholderEmbed(text), unknownWords: [] }
    const unknownWords = queryWords(text).filter(word => isZero(model.embed(word)))
    return { generation, vector: model.embed(text), unknownWords }
  }

  async fit(key: CollectionKey): Promise<{ records: number }> {
    const store = await this.opening
    const { id, generation } = await requireCollection(store, key)
    const { passages, through } = await allPassages(fittedOf(store), key)
    const model = fit(passages)
    this.candidate = {
      collection: id,
      generation: generation + 1,
      model,
      fitted: { model: model.encode(), records: passages.length, through },
    }
    return { records: passages.length }
  }

  async stage({ key, limit, owner }: Step & { limit: number }): Promise<number | false> {
    const candidate = await this.candidateFor(key)
    if (!candidate) return false
    const { generation, model } = candidate
    const spaces = await this.spaces()
    const records = await spaces.unstaged(key, generation, limit)
    const vectors = records.map(passage => ({ record: passage.record, vector: model.embed(passage) }))
    // Also of none, as it tells whether the lease is still held.
    return (await spaces.stage(key, { generation, owner }, vectors)) && vectors.length
  }

  async swap({ key, owner }: Step): Promise<boolean> {
    const candidate = await this.candidateFor(key)
    if (!candidate) return false
    const { generation, fitted } = candidate
    const spaces = await this.spaces()
    const swapped = await spaces.swap(key, { generation, owner }, fitted)
    if (swapped) this.candidate = undefined
    return swapped
  }

  private async current(key: CollectionKey): Promise<InForce> {
    const store = await this.opening
    const { id, generation } = await requireCollection(store, key)
    const kept = this.models.get(id)
    this.models.delete(id)
    const current = kept?.generation === generation ? kept : await load(store, key)
    this.models.set(id, current)
    const [oldest] = this.models.keys()
    if (this.models.size > modelsMax) this.models.delete(oldest!)
    return current
  }

  /** Undefined when the collection was deleted meanwhile; another one may have its name. */
  private async candidateFor(key: CollectionKey): Promise<Candidate | undefined> {
    const collection = await (await this.opening).collection(key)
    return this.candidate?.collection === collection?.id ? this.candidate : undefined
  }

  private async spaces(): Promise<FittedSpaces> {
    return fittedOf(await this.opening)
  }
}

async function requireCollection(store: ContentStore, key: CollectionKey): Promise<Collection> {
  const collection = await store.collection(key)
  if (!collection) throw collectionMissing(key)
  return collection
}

async function load(store: ContentStore, key: CollectionKey): Promise<InForce> {
  const { generation, model } = await fittedOf(store).model(key)
  try {
    return { generation, model: model && LsaModel.decode({ dimension: lsaDimension, ...model }) }
  } catch (error) {
    throw damaged(`the embedder of collection '${key.name}'`, error)
  }
}

async function allPassages(spaces: FittedSpaces, key: CollectionKey) {
  const passages: Passage[] = []
  let through = 0
  for (;;) {
    const slice = await spaces.passages(key, through, readSlice)
    for (const { title, text } of slice) passages.push({ title, text })
    through = slice.at(-1)?.record ?? through
    if (slice.length < readSlice) return { passages, through }
  }
}
