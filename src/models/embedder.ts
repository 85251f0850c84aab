import { WbError } from '../contract/errors.ts'
import type { EmbeddingService } from '../contract/services.ts'
import type { FailureFacts } from './endpoint.ts'

/** What a text is embedded for; some models tell the two apart. */
export type Purpose = 'document' | 'query'

/** Turns texts into vectors of one space. */
export interface Embedder {
  readonly dimension: number
  /**
   * @param purpose  `document` unless given
   * @returns one vector of `dimension` finite numbers per text, in order; not normalised
   * @throws embedding_unavailable         the provider cannot be reached, refuses, or lacks its credential
   * @throws embedding_dimension_mismatch  the model returns vectors of another length
   */
  embed(texts: readonly string[], signal: AbortSignal, purpose?: Purpose): Promise<Float32Array[]>
}

/** A failure of an embedding service, in words of ours; what the provider said stays in the cause. */
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
