import type { Host } from '../base/threads.ts'
import { WbError } from '../contract/errors.ts'
import type { EmbeddingService } from '../contract/services.ts'
import type { Embedder, Purpose } from '../models/embedder.ts'
import type { Passage } from '../models/lsa.ts'
import type { BaseContext } from './bases.ts'
import { requireVectors } from './guards.ts'
import type { Embedded, EmbeddedQuery, PassageOps } from './passages.ts'

/** A fit that ends meanwhile moves the space; each attempt begins with the one in force. */
const attemptsMax = 5

/**
 * Do what stands in one space, and again from the start when another one came into force meanwhile.
 *
 * @param work  undefined when the space moved
 * @throws collection_unavailable  it keeps moving
 */
export async function inOneSpace<T>(work: () => Promise<T | undefined>): Promise<T> {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const done = await work()
    if (done !== undefined) return done
  }
  throw new WbError('collection_unavailable', 'the vector space of this knowledge base keeps moving')
}

export interface SpaceParts {
  /** Work that a caller waits for, such as the vector of a query. */
  readonly query: Host<PassageOps>
  readonly openEmbedder: (service: EmbeddingService) => Embedder
}

/** Vectors for passages, in the space of a knowledge base. */
export class Space {
  constructor(private readonly parts: SpaceParts) {}

  /**
   * Embed passages in the space that is in force; for none, nobody is asked.
   *
   * @returns vectors of the collection's dimension, and the generation that they stand in
   * @throws vector_collection_required  the collection keeps no vectors
   * @throws embedding_unavailable, embedding_dimension_mismatch
   */
  async embed(
    context: BaseContext,
    passages: readonly Passage[],
    purpose: Purpose,
    signal: AbortSignal,
  ): Promise<Embedded> {
    requireVectors(context.collection)
    if (passages.length === 0) return { generation: context.collection.generation, vectors: [] }
    if (context.fitted) return this.parts.query.run('embed', { key: context.key, passages })
    const embedder = this.parts.openEmbedder(context.embedding)
    const vectors = await embedder.embed(passages.map(asText), signal, purpose)
    return { generation: context.collection.generation, vectors }
  }

  /**
   * Embeds a query in the current space. Only a space that is fitted by this runtime can have unknown words.
   *
   * @throws vector_collection_required  the collection keeps no vectors
   * @throws embedding_unavailable, embedding_dimension_mismatch
   */
  async embedQuery(context: BaseContext, text: string, signal: AbortSignal): Promise<EmbeddedQuery> {
    if (context.fitted) {
      requireVectors(context.collection)
      return this.parts.query.run('embedQuery', { key: context.key, text })
    }
    const { generation, vectors } = await this.embed(context, [{ title: null, text }], 'query', signal)
    return { generation, vector: vectors[0]!, unknownWords: [] }
  }
}

/** A hosted model reads the title as the first line. */
function asText({ title, text }: Passage): string {
  return title === null ? text : `${title}\n${text}`
}
