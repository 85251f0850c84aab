import { WbError } from '../contract/errors.ts'
import type { EmbeddingService } from '../contract/services.ts'
import type { FailureFacts } from './endpoint.ts'

/** Purpose of an embedded text. Some models embed queries and documents differently. */
export type EmbeddingPurpose = 'document' | 'query'

/**
 * How long to retry if a provider fails or limits requests: a `job` waits for minutes, because its work would be lost otherwise.
 * A `request` waits for seconds, because a client waits for it.
 */
export type EmbeddingRetryPolicy = 'request' | 'job'

export interface EmbeddingOptions {
  /** `request` by default. */
  readonly retryPolicy?: EmbeddingRetryPolicy
  /** Called before each request to a provider, without retries. */
  readonly onRequest?: () => void
  /** Called with the vectors of each request to a provider, also if a later request fails. */
  readonly onVectors?: (texts: readonly string[], vectors: readonly Float32Array[]) => void
}

/** Converts texts to vectors of one vector space. */
export interface Embedder {
  readonly dimension: number
  /**
   * Embeds texts.
   *
   * @param purpose  `document` by default
   * @returns one vector of `dimension` finite numbers per text, in order; not normalized
   * @throws embedding_unavailable         the provider cannot be reached or rejects the request, or its
   *   credential is missing
   * @throws embedding_dimension_mismatch  the model returns vectors of a different dimension
   */
  embed(
    texts: readonly string[],
    signal: AbortSignal,
    purpose?: EmbeddingPurpose,
    options?: EmbeddingOptions,
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
