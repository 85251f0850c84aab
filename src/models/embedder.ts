import { WbError } from '../contract/errors.ts'
import type { EmbeddingService } from '../contract/services.ts'
import type { FailureFacts } from './endpoint.ts'

/** Use of an embedded text. Some models embed queries and documents differently. */
export type EmbeddingPurpose = 'document' | 'query'

/** Converts texts to vectors of one space. */
export interface Embedder {
  readonly dimension: number
  /**
   * Embeds texts.
   *
   * @param purpose  `document` by default
   * @returns one vector of `dimension` finite numbers per text, in order; not normalized
   * @throws embedding_unavailable         the provider is unreachable, refuses the request, or has no
   * credential
   * @throws embedding_dimension_mismatch  the model returns vectors of another length
   */
  embed(texts: readonly string[], signal: AbortSignal, purpose?: EmbeddingPurpose): Promise<Float32Array[]>
}

/**
 * Returns a failure of an embedding service with our own message. The provider's message is only in the
 * cause.
 */
export function embedderFailure(
  { name, provider }: EmbeddingService,
  reason: string,
  facts: FailureFacts = {},
  cause?: unknown,
): WbError {
  return new WbError('embedding_unavailable', `embedding service "${name}" (${provider}) ${reason}`, facts, {
    cause,
  })
}
