import { WbError } from '../contract/errors.ts'
import type { EmbeddingService } from '../contract/services.ts'
import type { FailureFacts } from './endpoint.ts'

/** Purpose of an embedded text. Some models embed queries and documents differently. */
export type EmbeddingPurpose = 'document' | 'query'

/** Converts texts to vectors of one vector space. */
export interface Embedder {
  readonly dimension: number
  /**
   * Embeds texts.
   *
   * @param purpose    `document` by default
   * @param onRequest  called before each request to a provider, without retries
   * @returns one vector of `dimension` finite numbers per text, in order; not normalized
   * @throws embedding_unavailable         the provider cannot be reached or rejects the request, or its
   *   credential is missing
   * @throws embedding_dimension_mismatch  the model returns vectors of a different dimension
   */
  embed(
    texts: readonly string[],
    signal: AbortSignal,
    purpose?: EmbeddingPurpose,
    onRequest?: () => void,
  ): Promise<Float32Array[]>
}

/**
 * Returns the error for a failure of an embedding service.
 *
 * @param reason  completes a sentence about the service; must not contain text from the provider
 * @param cause   can contain text from the provider
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
