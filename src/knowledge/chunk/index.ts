import type { Ingest } from '../../contract/documents.ts'
import { WbError } from '../../contract/errors.ts'
import type { ChunkingService } from '../../contract/services.ts'
import type { Chunker, ChunkOptions } from './chunker.ts'
import { lineChunker } from './line.ts'
import { recursiveChunker } from './recursive.ts'
import { sentenceChunker } from './sentence.ts'

const knownChunkers: readonly Chunker[] = [recursiveChunker, lineChunker, sentenceChunker]

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

/** A chunker with its chunk sizes. */
export interface BoundChunker {
  /** Chunker id, which is stored with each chunk as `chunker.id`. */
  readonly id: string
  /**
   * Returns the chunks of a text in order. Each is an exact slice of the text.
   *
   * @throws invalid_chunker  the sizes result in more than a million chunks
   */
  chunk(text: string): string[]
}

/**
 * Returns the chunker of a service, with its sizes and the overrides of one ingest.
 *
 * A missing size is derived from `maxChars`. If an ingest overrides `maxChars`, sizes of the service that are
 * not below it are also derived. So callers can request small chunks without knowing the service's overlap.
 *
 * @throws invalid_chunker  the engine or strategy is unknown, or a size is not an integer or not below `maxChars`
 * @see docs/http.md#chunkers
 */
export function createChunker(service: ChunkerSettings, override: ChunkOverride = {}): BoundChunker {
  const chunker = findChunker(service)
  const options = optionsOf(service, override)
  return {
    id: chunker.id,
    chunk: text => chunker.chunk(text, options).map(({ start, end }) => text.slice(start, end)),
  }
}

function findChunker({ engine, strategy }: ChunkerSettings): Chunker {
  const match = knownChunkers.find(
    chunker => chunker.engine === engine && (strategy === null || chunker.strategy === strategy),
  )
  if (match) return match
  const names = knownChunkers.map(chunker => `${chunker.engine}/${chunker.strategy}`).join(', ')
  const requested = `${engine}/${strategy ?? '(none)'}`.slice(0, 200)
  throw new WbError('invalid_chunker', `no chunker ${requested}; there are ${names}`)
}

function optionsOf(service: ChunkerSettings, override: ChunkOverride): ChunkOptions {
  const areRows = service.chunkUnit === 'rows'
  const maxChars = override.maxChars ?? (areRows ? null : service.maxChunkSize) ?? 1_000
  if (!Number.isSafeInteger(maxChars) || maxChars < 1)
    throw new WbError('invalid_chunker', 'maxChars: must be a whole number above 0')
  const pick = (name: 'minChars' | 'overlapChars', inherited: number | null, derived: number): number => {
    const size = override[name] ?? inherited ?? derived
    if (!Number.isSafeInteger(size) || size < 0)
      throw new WbError('invalid_chunker', `${name}: must be a whole number, 0 or above`)
    if (size < maxChars) return size
    if (override[name] === undefined && override.maxChars !== undefined) return derived
    throw new WbError('invalid_chunker', `${name}: ${size} is not below maxChars, which is ${maxChars}`)
  }
  return {
    maxChars,
    minChars: pick('minChars', areRows ? 0 : service.minChunkSize, Math.min(100, Math.floor(maxChars / 4))),
    overlapChars: pick(
      'overlapChars',
      areRows ? 0 : service.overlapSize,
      Math.min(150, Math.floor(maxChars / 6)),
    ),
    maxLines: areRows ? service.maxChunkSize : null,
  }
}
