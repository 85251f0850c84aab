import type { Host } from '../base/threads.ts'
import type { EmbeddingService } from '../contract/services.ts'
import type { Embedder, Purpose } from '../models/embedder.ts'
import type { BaseContext } from './bases.ts'
import type { Embedded, Passage, PassageOps } from './passages.ts'

interface Parts {
  /** Work that a caller waits for, such as the vector of a query. */
  readonly query: Host<PassageOps>
  readonly openEmbedder: (service: EmbeddingService, workspaceId: string) => Embedder
}

/** Vectors for passages, in the space of a knowledge base. */
export class Space {
  constructor(private readonly parts: Parts) {}

  /**
   * Embed passages in the space that is in force.
   *
   * @returns vectors of the collection's dimension, and the generation that they stand in
   * @throws embedding_unavailable, embedding_dimension_mismatch
   */
  async embed(
    context: BaseContext,
    passages: readonly Passage[],
    purpose: Purpose,
    signal: AbortSignal,
  ): Promise<Embedded> {
    if (context.fitted) return this.parts.query.run('embed', { key: context.key, passages })
    const embedder = this.parts.openEmbedder(context.embedding, context.base.workspaceId)
    const vectors = await embedder.embed(passages.map(asText), signal, purpose)
    return { generation: context.collection.generation, vectors }
  }
}

/** A hosted model reads the title as the first line. */
function asText({ title, text }: Passage): string {
  return title === null ? text : `${title}\n${text}`
}
