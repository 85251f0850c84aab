import type { OperationHost } from '../base/threads.ts'
import { WbError } from '../contract/errors.ts'
import type { EmbeddingService } from '../contract/services.ts'
import type { Embedder, EmbeddingOptions, EmbeddingPurpose } from '../models/embedder.ts'
import type { EmbeddedPassage } from '../models/lsa.ts'
import { requireVectors } from './guards.ts'
import type { BaseContext } from './knowledge-bases.ts'
import type { EmbeddedQuery, EmbeddedVectors, PassageOperations } from './passage-operations.ts'

/** Maximum number of attempts. Work is retried if a fit replaced the vector space in the meantime. */
const attemptsMax = 5

/**
 * Runs work that must use the same vector space from start to end. Repeats the work if the space changes in the
 * meantime.
 *
 * @param work  returns undefined, or fails with the fact `stale`, if the space changed
 * @throws collection_unavailable  the space changed during every attempt
 */
export async function retryOnSpaceChange<T>(work: () => Promise<T | undefined>): Promise<T> {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const result = await work().catch(undefinedIfSpaceChanged)
    if (result !== undefined) return result
  }
  throw new WbError('collection_unavailable', 'the vector space of this knowledge base keeps changing', {
    stale: true,
  })
}

/** Returns true for an error that a change of the vector space has caused. */
export function isSpaceChange(error: unknown): boolean {
  return error instanceof WbError && error.facts.stale === true
}

/** Returns undefined for an error that a change of the vector space has caused, and throws others. */
export function undefinedIfSpaceChanged(error: unknown): undefined {
  if (!isSpaceChange(error)) throw error
}

export interface VectorSpaceParts {
  /** Host for operations that a caller waits for, such as embedding a query. */
  readonly query: OperationHost<PassageOperations>
  readonly openEmbedder: (service: EmbeddingService) => Embedder
}

/** Embeds passages and queries in the vector space of a knowledge base. */
export class VectorSpace {
  constructor(private readonly parts: VectorSpaceParts) {}

  /**
   * Embeds passages in the current space. Sends no request to a provider if there are no passages.
   *
   * @returns vectors of the collection's dimension, and the generation of their space
   * @throws vector_collection_required  the collection has no vectors
   * @throws embedding_unavailable, embedding_dimension_mismatch
   */
  async embed(
    context: BaseContext,
    passages: readonly EmbeddedPassage[],
    purpose: EmbeddingPurpose,
    signal: AbortSignal,
    options?: EmbeddingOptions,
  ): Promise<EmbeddedVectors> {
    requireVectors(context.collection)
    if (passages.length === 0) return { generation: context.collection.generation, vectors: [] }
    if (context.isFittedByRuntime) return this.parts.query.run('embed', { key: context.key, passages })
    const embedder = this.parts.openEmbedder(context.embedding)
    const vectors = await embedder.embed(passages.map(toModelText), signal, purpose, options)
    return { generation: context.collection.generation, vectors }
  }

  /**
   * Embeds a query in the current space. Returns unknown words only for a space that the runtime fits.
   *
   * @throws vector_collection_required  the collection has no vectors
   * @throws embedding_unavailable, embedding_dimension_mismatch
   */
  async embedQuery(context: BaseContext, text: string, signal: AbortSignal): Promise<EmbeddedQuery> {
    if (context.isFittedByRuntime) {
      requireVectors(context.collection)
      return this.parts.query.run('embedQuery', { key: context.key, text })
    }
    const { generation, vectors } = await this.embed(context, [{ title: null, text }], 'query', signal)
    return { generation, vector: vectors[0]!, unknownWords: [] }
  }
}

/** Returns the input of a model for a passage, with the title as the first line. */
export function toModelText({ title, text }: EmbeddedPassage): string {
  return title === null ? text : `${title}\n${text}`
}
