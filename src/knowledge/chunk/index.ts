import type { Ingest } from '../../contract/documents.ts'
import { WbError } from '../../contract/errors.ts'
import type { ChunkingService } from '../../contract/services.ts'
import { countSentenceTokens } from '../../sentence-model/count-tokens.ts'
import { type ChunkMeasure, measureTokens } from './chunk-measure.ts'
import type { Chunker, ChunkOptions, ChunkSpan } from './chunker.ts'
import { lineChunker } from './line.ts'
import { recursiveChunker } from './recursive.ts'
import { sentenceChunker } from './sentence.ts'
import { structureChunker } from './structure.ts'

const knownChunkers: readonly Chunker[] = [recursiveChunker, lineChunker, sentenceChunker, structureChunker]

/** Chunkers as the API lists them. The first chunker of an engine is the default of that engine. */
export const chunkerInfos: readonly Pick<Chunker, 'id' | 'engine' | 'strategy' | 'description'>[] =
  knownChunkers.map(({ id, engine, strategy, description }) => ({ id, engine, strategy, description }))

/** Fields of a chunking service that determine how a text is split. */
export type ChunkerSettings = Pick<
  ChunkingService,
  'engine' | 'strategy' | 'chunkUnit' | 'maxChunkSize' | 'minChunkSize' | 'overlapSize'
>
/** Sizes for one ingest, which override those of the service. */
export type ChunkOverride = NonNullable<Ingest['chunker']>

/** Maximum size of a chunk if the service has none. The built-in sentence model reads at most 256 tokens. */
const maxCharsDefault = 1_000
const maxTokensDefault = 200

/** A chunker with fixed chunk sizes. */
export interface BoundChunker {
  /** Chunker ID, which is stored with each chunk as `chunker.id`. */
  readonly id: string
  readonly options: ChunkOptions
  /** Unit of the sizes in the options. */
  readonly unit: 'characters' | 'tokens'
  /**
   * Returns the spans of the chunks of a text in order.
   *
   * @param isCode  true if the text is source code
   * @throws invalid_chunker  the sizes result in more than a million chunks
   */
  chunk(text: string, isCode?: boolean): ChunkSpan[]
}

/**
 * Returns the chunker of a service, with the sizes of the service or of an ingest that overrides them.
 *
 * A missing size is derived from `maxChars`. If an ingest overrides `maxChars`, service sizes that are not below the
 * new value are also derived. So callers can request small chunks without knowing the service's overlap.
 *
 * @throws invalid_chunker  the engine or strategy is unknown, or a size is not an integer or not below `maxChars`
 * @see docs/http.md#chunkers
 */
export function createChunker(service: ChunkerSettings, override: ChunkOverride = {}): BoundChunker {
  const chunker = findChunker(service)
  const usesTokens = chunker.supportsTokens === true && service.chunkUnit === 'tokens'
  const sizes = sizesOf(service, override, usesTokens ? maxTokensDefault : maxCharsDefault)
  const options = usesTokens ? { ...sizes, measure: measureSentenceTokens } : sizes
  return {
    id: chunker.id,
    options: sizes,
    unit: usesTokens ? 'tokens' : 'characters',
    chunk: (text, isCode = false) => chunker.chunk(text, { ...options, isCode }),
  }
}

function findChunker({ engine, strategy }: ChunkerSettings): Chunker {
  const match = knownChunkers.find(
    chunker => chunker.engine === engine && (strategy === null || chunker.strategy === strategy),
  )
  if (match) return match
  const names = knownChunkers.map(chunker => `${chunker.engine}/${chunker.strategy}`).join(', ')
  const requested = `${engine}/${strategy ?? '(none)'}`.slice(0, 200)
  throw new WbError('invalid_chunker', `chunker ${requested} does not exist; available chunkers: ${names}`)
}

function sizesOf(service: ChunkerSettings, override: ChunkOverride, maxDefault: number): ChunkOptions {
  const usesRows = service.chunkUnit === 'rows'
  const maxChars = override.maxChars ?? (usesRows ? null : service.maxChunkSize) ?? maxDefault
  if (!Number.isSafeInteger(maxChars) || maxChars < 1)
    throw new WbError('invalid_chunker', 'maxChars: must be an integer above 0')
  const sizeOf = (name: 'minChars' | 'overlapChars', inherited: number | null, derived: number): number => {
    const size = override[name] ?? inherited ?? derived
    if (!Number.isSafeInteger(size) || size < 0)
      throw new WbError('invalid_chunker', `${name}: must be an integer of at least 0`)
    if (size < maxChars) return size
    if (override[name] === undefined && override.maxChars !== undefined) return derived
    throw new WbError('invalid_chunker', `${name}: ${size} must be less than maxChars (${maxChars})`)
  }
  return {
    maxChars,
    minChars: sizeOf(
      'minChars',
      usesRows ? 0 : service.minChunkSize,
      Math.min(100, Math.floor(maxChars / 4)),
    ),
    overlapChars: sizeOf(
      'overlapChars',
      usesRows ? 0 : service.overlapSize,
      Math.min(150, Math.floor(maxChars / 6)),
    ),
    maxLines: usesRows ? service.maxChunkSize : null,
  }
}

/** Measures a text in tokens of the built-in sentence model. */
export function measureSentenceTokens(text: string): ChunkMeasure {
  return measureTokens(text, countSentenceTokens)
}
