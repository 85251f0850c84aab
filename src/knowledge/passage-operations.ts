import { readFile } from 'node:fs/promises'
import { stopwatch } from '../base/clock.ts'
import { sha256 } from '../base/id.ts'
import type { ThreadOperations } from '../base/threads.ts'
import { isZeroVector } from '../base/unit-vector.ts'
import { queryWords } from '../base/words.ts'
import type { ChunkPreview } from '../contract/chunk-preview.ts'
import { limits } from '../contract/limits.ts'
import {
  type EmbeddedPassage,
  fitLsaModel,
  fitSampleMax,
  LsaModel,
  lsaDimension,
  Sample,
} from '../models/lsa.ts'
import { placeholderEmbed } from '../models/placeholder-embedder.ts'
import type { Collection, CollectionKey, ContentStore, FitResult, FittedSpaces } from '../storage/content.ts'
import { damagedStore } from '../storage/damaged-store.ts'
import { collectionMissing, requireFittedSpaces } from '../storage/store-features.ts'
import type { Visibility } from '../storage/visibility.ts'
import { parseArchiveLines } from './archive/parse-lines.ts'
import { type ChunkerSettings, measureSentenceTokens } from './chunk/index.ts'
import { type ChunkedText, type ChunkInput, chunkText, passagesOf } from './chunk-text.ts'
import { extractText } from './parse/text.ts'

/** Vectors, and the generation of their space. */
export interface EmbeddedVectors {
  readonly generation: number
  readonly vectors: Float32Array[]
}

/** The vector of a query, and the generation of its space. */
export interface EmbeddedQuery {
  readonly generation: number
  readonly vector: Float32Array
  /** Words of the query that the model does not know. The vector does not represent them. */
  readonly unknownWords: readonly string[]
}

/** The chunks of a text, with their vectors if the runtime fits the space. */
export interface PreparedText extends ChunkedText {
  readonly embedded: EmbeddedVectors | undefined
  /** Time that embedding took, in milliseconds. */
  readonly embeddingMs: number
}

/** Number of passages per read during a fit. */
const passagesPerRead = 2_000

/**
 * Creates the text operations that can take a long time: chunking, embedding in a fitted space, and fitting a space.
 * They run on a worker thread in a server, and inline in a short command.
 */
export function createPassageOperations(opening: Promise<ContentStore>) {
  const spaces = new FittedModels(opening)
  return {
    hash: (text: string) => sha256(text),

    hashFile: async (path: string) => sha256(await readFile(path)),

    parseArchiveLines,

    /** Decodes a text file. */
    extract: extractText,

    /** Chunks a text, and embeds the chunks if their space is fitted. */
    async prepare(
      input: ChunkInput & { title: string | null; fittedIn: CollectionKey | undefined },
    ): Promise<PreparedText> {
      const chunked = chunkText(input)
      const passages = passagesOf(input.title, chunked.chunks)
      const elapsedMs = stopwatch()
      const embedded = input.fittedIn && (await spaces.embed(input.fittedIn, passages))
      return { ...chunked, embedded, embeddingMs: elapsedMs() }
    },

    /** Chunks a text with several chunkers, and counts the tokens of each chunk. */
    preview: ({ services, ...input }: PreviewInput) =>
      services.map(service => previewChunks({ ...input, service, override: undefined })),

    embed: (input: { key: CollectionKey; passages: readonly EmbeddedPassage[] }) =>
      spaces.embed(input.key, input.passages),

    embedQuery: (input: { key: CollectionKey; text: string }) => spaces.embedQuery(input.key, input.text),

    /** Fits a model to the passages of a collection. It becomes the candidate for the next generation. */
    fit: (input: FitInput) => spaces.fit(input),

    /**
     * Embeds up to `limit` records that have no vector in the candidate space. Returns undefined if the collection was
     * deleted.
     */
    embedUnstaged: (input: { key: CollectionKey; limit: number }) => spaces.embedUnstaged(input),

    /** Returns the candidate model; undefined if the collection was deleted. */
    candidate: (key: CollectionKey) => spaces.candidateFit(key),
  } satisfies ThreadOperations
}

interface PreviewInput extends Pick<ChunkInput, 'text' | 'layout'> {
  readonly services: readonly ChunkerSettings[]
}

function previewChunks(input: ChunkInput): ChunkPreview['previews'][number] {
  const { chunkerId, chunks } = chunkText(input)
  const measure = measureSentenceTokens(input.text)
  const shown = chunks
    .slice(0, limits.previewedChunks)
    .map(({ start, text, section, tableHeads, place }) => ({
      start,
      end: start + text.length,
      tokens: measure.size(start, start + text.length),
      section: section ?? null,
      tableHeads: tableHeads ?? null,
      page: place?.page ?? null,
      slide: place?.slide ?? null,
      sheet: place?.sheet ?? null,
    }))
  return { chunkerId, chunkTotal: chunks.length, chunks: shown }
}

/** The vector of a record in a candidate space. */
interface StagedVector {
  readonly record: number
  readonly vector: Float32Array
}

/** The collection and the passages of a fit. */
export interface FitInput {
  readonly key: CollectionKey
  /** Passages that the model may learn from. */
  readonly visibility: Visibility
  /** Minimum number of passages. With fewer, the placeholder stays in use, if it still is. */
  readonly passagesMin: number
}

export type PassageOperations = ReturnType<typeof createPassageOperations>

/** A fitted model that is not the current model yet. */
interface CandidateModel {
  /** ID of the collection. */
  readonly collection: number
  readonly generation: number
  readonly model: LsaModel
  readonly fitted: FitResult
}

/** The current model of a collection. */
interface CurrentModel {
  readonly generation: number
  /** Undefined if the placeholder embedder is in use. */
  readonly model: LsaModel | undefined
}

/** Maximum number of models in memory. A model with 20,000 terms takes about 4 MB. */
const modelsMax = 32

/** Cache of current models by collection ID, and the candidate model of the running fit. */
class FittedModels {
  private readonly models = new Map<number, CurrentModel>()
  private candidate: CandidateModel | undefined

  constructor(private readonly opening: Promise<ContentStore>) {}

  async embed(key: CollectionKey, passages: readonly EmbeddedPassage[]): Promise<EmbeddedVectors> {
    const { generation, model } = await this.current(key)
    return { generation, vectors: embedAll(model, passages) }
  }

  async embedQuery(key: CollectionKey, text: string): Promise<EmbeddedQuery> {
    const { generation, model } = await this.current(key)
    if (!model) return { generation, vector: placeholderEmbed(text), unknownWords: [] }
    const unknownWords = queryWords(text).filter(word => isZeroVector(model.embed(word)))
    return { generation, vector: model.embed(text), unknownWords }
  }

  async fit({
    key,
    visibility,
    passagesMin,
  }: FitInput): Promise<{ generation: number; records: number } | undefined> {
    const store = await this.opening
    const { id, generation } = await requireCollection(store, key)
    const sampled = await samplePassages(requireFittedSpaces(store), { key, visibility })
    const { passages, learned, records, through } = sampled
    if (generation === 0 && passages.length < passagesMin) return undefined
    const model = fitLsaModel(passages)
    const fitted = { model: model.encode(), records: learned, through }
    this.candidate = { collection: id, generation: generation + 1, model, fitted }
    return { generation: generation + 1, records }
  }

  async embedUnstaged(input: { key: CollectionKey; limit: number }): Promise<StagedVector[] | undefined> {
    const candidate = await this.candidateFor(input.key)
    if (!candidate) return undefined
    const spaces = requireFittedSpaces(await this.opening)
    const records = await spaces.unstaged(input.key, candidate.generation, input.limit)
    const vectors = embedAll(candidate.model, records)
    return records.map(({ record }, at) => ({ record, vector: vectors[at]! }))
  }

  async candidateFit(key: CollectionKey): Promise<FitResult | undefined> {
    return (await this.candidateFor(key))?.fitted
  }

  private async current(key: CollectionKey): Promise<CurrentModel> {
    const store = await this.opening
    const { id, generation } = await requireCollection(store, key)
    const cached = this.models.get(id)
    this.models.delete(id)
    const current = cached?.generation === generation ? cached : await loadCurrentModel(store, key)
    this.models.set(id, current)
    const [oldest] = this.models.keys()
    if (this.models.size > modelsMax) this.models.delete(oldest!)
    return current
  }

  /**
   * Returns the candidate model for a collection; undefined if the collection was deleted in the meantime. Compares
   * IDs, because a new collection may have the same name.
   */
  private async candidateFor(key: CollectionKey): Promise<CandidateModel | undefined> {
    const collection = await (await this.opening).collection(key)
    return this.candidate?.collection === collection?.id ? this.candidate : undefined
  }
}

/** Embeds passages, without a model in the placeholder space. The vectors share a buffer, which is fast to send. */
function embedAll(model: LsaModel | undefined, passages: readonly EmbeddedPassage[]): Float32Array[] {
  const all = new Float32Array(passages.length * lsaDimension)
  return passages.map((passage, at) => {
    const vector = all.subarray(at * lsaDimension, (at + 1) * lsaDimension)
    vector.set(model ? model.embed(passage) : placeholderEmbed(passage))
    return vector
  })
}

async function requireCollection(store: ContentStore, key: CollectionKey): Promise<Collection> {
  const collection = await store.collection(key)
  if (!collection) throw collectionMissing(key)
  return collection
}

async function loadCurrentModel(store: ContentStore, key: CollectionKey): Promise<CurrentModel> {
  const { generation, model } = await requireFittedSpaces(store).model(key)
  try {
    return { generation, model: model && LsaModel.decode({ dimension: lsaDimension, ...model }) }
  } catch (error) {
    throw damagedStore(`the embedder of collection '${key.name}'`, error)
  }
}

/**
 * Reads a random sample of the visible passages of a collection, so that memory is limited for any number of records.
 *
 * @returns the sample, the number of passages that it represents, the number of all passages, and the last record of them
 */
async function samplePassages(
  spaces: FittedSpaces,
  { key, visibility }: Pick<FitInput, 'key' | 'visibility'>,
) {
  const sample = new Sample<EmbeddedPassage>(fitSampleMax)
  let learned = 0
  let records = 0
  let through = 0
  for (;;) {
    const slice = await spaces.passages(key, { after: through, limit: passagesPerRead, visibility })
    for (const { title, text } of slice) {
      if (text === null) continue
      sample.add({ title, text })
      learned++
    }
    records += slice.length
    through = slice.at(-1)?.record ?? through
    if (slice.length < passagesPerRead) return { passages: sample.items, learned, records, through }
  }
}
