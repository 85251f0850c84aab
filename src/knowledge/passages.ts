import { sha256 } from '../base/id.ts'
import type { Ops } from '../base/threads.ts'
import type { Ingest } from '../contract/documents.ts'
import type { ChunkingService } from '../contract/services.ts'
import { fit, LsaModel } from '../models/lsa.ts'
import { placeholderEmbed } from '../models/placeholder.ts'
import type { CollectionKey, ContentStore, EncodedModel, FittedSpaces } from '../storage/content.ts'
import { fittedOf } from '../storage/missing.ts'
import { chunkerFor } from './chunk/index.ts'

/** Text to embed, with the title that weighs in it. */
export interface Passage {
  readonly title: string | null
  readonly text: string
}

/** Vectors, and the generation of the space that they stand in. */
export interface Embedded {
  readonly generation: number
  readonly vectors: Float32Array[]
}

export interface Prepared extends Embedded {
  readonly chunkerId: string
  readonly chunks: string[]
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

    /** Chunk a text, and embed the chunks where their space is fitted. */
    async prepare(input: {
      text: string
      title: string | null
      service: ChunkingService
      override: Ingest['chunker']
      fittedIn: CollectionKey | undefined
    }): Promise<Prepared> {
      const chunker = chunkerFor(input.service, input.override)
      const chunks = chunker.chunk(input.text)
      const passages = chunks.map(text => ({ title: input.title, text }))
      const embedded = input.fittedIn
        ? await spaces.embed(input.fittedIn, passages)
        : { generation: 0, vectors: [] }
      return { chunkerId: chunker.id, chunks, ...embedded }
    },

    embed: (input: { key: CollectionKey; passages: readonly Passage[] }) =>
      spaces.embed(input.key, input.passages),

    /** Fit a model on the passages of a collection and keep it as the candidate for the next generation. */
    fit: (key: CollectionKey) => spaces.fit(key),

    /** Embed up to `limit` records in the candidate: how many, or false when `owner` lost its lease. */
    stage: (input: { key: CollectionKey; limit: number; owner: string }) => spaces.stage(input),

    /** Put the candidate in force; false while records lack a vector in it, or when `owner` lost its lease. */
    swap: (input: { key: CollectionKey; owner: string }) => spaces.swap(input),
  } satisfies Ops
}

export type PassageOps = ReturnType<typeof passageOps>

interface Candidate {
  readonly generation: number
  readonly encoded: EncodedModel
  readonly model: LsaModel
  readonly fittedRecords: number
  /** Highest record that the fit read. */
  readonly through: number
}

/** Models by collection, kept while their generation is in force. */
class Spaces {
  private readonly models = new Map<string, { generation: number; model: LsaModel | undefined }>()
  private readonly candidates = new Map<string, Candidate>()

  constructor(private readonly opening: Promise<ContentStore>) {}

  async embed(key: CollectionKey, passages: readonly Passage[]): Promise<Embedded> {
    const { generation, model } = await this.current(key)
    return {
      generation,
      vectors: passages.map(passage => (model ? model.embed(passage) : placeholderEmbed(passage))),
    }
  }

  async fit(key: CollectionKey): Promise<{ generation: number; records: number }> {
    const spaces = await this.spaces()
    const { generation } = await this.current(key)
    const { passages, through } = await allPassages(spaces, key)
    const model = fit(passages)
    this.candidates.set(nameOf(key), {
      generation: generation + 1,
      model,
      encoded: model.encode(),
      fittedRecords: passages.length,
      through,
    })
    return { generation: generation + 1, records: passages.length }
  }

  async stage({
    key,
    limit,
    owner,
  }: {
    key: CollectionKey
    limit: number
    owner: string
  }): Promise<number | false> {
    const spaces = await this.spaces()
    const { generation, model } = this.candidate(key)
    const records = await spaces.unstaged(key, generation, limit)
    const vectors = records.map(passage => ({ record: passage.record, vector: model.embed(passage) }))
    const isStaged = vectors.length === 0 || (await spaces.stage(key, generation, vectors, owner))
    return isStaged && vectors.length
  }

  async swap({ key, owner }: { key: CollectionKey; owner: string }): Promise<boolean> {
    const spaces = await this.spaces()
    const { generation, encoded, fittedRecords, through } = this.candidate(key)
    const swapped = await spaces.swap(key, generation, encoded, fittedRecords, { owner, through })
    if (swapped) this.candidates.delete(nameOf(key))
    return swapped
  }

  private async current(key: CollectionKey) {
    const store = await this.opening
    const name = nameOf(key)
    const kept = this.models.get(name)
    const generation = (await store.collection(key))?.generation ?? 0
    if (kept?.generation === generation) return kept
    const found = await fittedOf(store).model(key)
    const loaded = {
      generation: found.generation,
      model: found.model && LsaModel.decode({ dimension: modelDimension, ...found.model }),
    }
    this.models.set(name, loaded)
    return loaded
  }

  private candidate(key: CollectionKey): Candidate {
    const candidate = this.candidates.get(nameOf(key))
    if (!candidate) throw new Error('no model was fitted for this collection')
    return candidate
  }

  private async spaces(): Promise<FittedSpaces> {
    return fittedOf(await this.opening)
  }
}

/** Every fitted space has this dimension, also its placeholder. */
export const modelDimension = 128

function nameOf(key: CollectionKey): string {
  return `${key.workspaceId}/${key.name}`
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
