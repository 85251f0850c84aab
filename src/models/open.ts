import type { Environment } from '../config/environment.ts'
import { isProviderName } from '../contract/providers.ts'
import type { EmbeddingService } from '../contract/services.ts'
import { type Embedder, embedderFailure } from './embedder.ts'
import type { IsReleased } from './endpoint.ts'
import { hostedEmbedder } from './hosted.ts'
import { mockEmbedder } from './mock.ts'
import type { Outbound } from './outbound.ts'

/** What models are reached with. */
export interface ModelParts {
  readonly environment: Environment
  /** Asked at each call, so that a release is in force at once. */
  readonly isReleased: IsReleased
  readonly outbound: Outbound
}

/**
 * The embedder of a service. Nothing is dialled or resolved before its first call.
 *
 * @throws embedding_unavailable  the runtime cannot call this provider
 */
export function openEmbedder(service: EmbeddingService, parts: ModelParts): Embedder {
  const { provider, embeddingDimension } = service
  if (provider === 'mock') return mockEmbedder(embeddingDimension)
  if (!isProviderName(provider))
    throw embedderFailure(service, 'has a provider that this runtime cannot call', {
      hint: 'Use provider openai, openrouter, cohere or ollama; any OpenAI-compatible server works with endpointBaseUrl.',
    })
  const { environment, isReleased, outbound } = parts
  return hostedEmbedder({ service, provider, environment, isReleased }, outbound)
}
