import type { Clock } from '../base/clock.ts'
import type { Environment } from '../config/environment.ts'
import type { Config } from '../config/schema.ts'
import { isProviderName } from '../contract/providers.ts'
import type { EmbeddingService, LlmService } from '../contract/services.ts'
import { Catalogue } from './catalogue.ts'
import { type Embedder, embedderFailure } from './embedder.ts'
import type { IsReleased, ModelParts } from './endpoint.ts'
import { openGuard } from './guard.ts'
import { hostedEmbedder } from './hosted.ts'
import { listMcpTools, type McpEndpoint, type McpTool } from './mcp.ts'
import { mockEmbedder } from './mock.ts'
import { type Outbound, openNetwork, type Resolve } from './outbound.ts'
import { probeModel } from './probe.ts'

/** Everything that is dialled: models, tool servers, and the network that they are reached by. */
export interface Models {
  /** The network, for libraries that want a `fetch`; guarded, and follows no redirect. */
  readonly fetch: typeof fetch
  readonly outbound: Outbound
  /** Models that a service can name. */
  readonly catalogue: Catalogue
  /** @throws validation_error  at the field, for a URL that may not be called */
  checkUrl(field: string, url: string): void
  /** @throws embedding_unavailable  the runtime cannot call this provider */
  openEmbedder(service: EmbeddingService): Embedder
  /** @throws llm_model_not_chat, llm_model_unavailable  see `probeModel` */
  probe(service: LlmService, sent: Partial<LlmService>, signal: AbortSignal): Promise<void>
  /** @throws McpFailure */
  listTools(server: McpEndpoint, signal: AbortSignal): Promise<readonly McpTool[]>
  close(): Promise<void>
}

export interface ModelsParts {
  readonly config: Config
  readonly clock: Clock
  readonly environment: Environment
  readonly isReleased: IsReleased
  /** Stands in for the network where models are called. */
  readonly outbound: Outbound | undefined
  readonly resolve: Resolve | undefined
}

/** Nothing is dialled or loaded before the first call. */
export function openModels({ config, clock, environment, isReleased, resolve, ...own }: ModelsParts): Models {
  const guard = openGuard(config, environment)
  const network = openNetwork({ guard, resolve })
  const { fetch } = network
  const parts = { environment, isReleased, outbound: own.outbound ?? network.send }
  return {
    fetch,
    outbound: parts.outbound,
    catalogue: new Catalogue({ ...parts, clock }),
    checkUrl: (field, url) => guard.checkUrl(field, url),
    openEmbedder: service => openEmbedder(service, parts),
    probe: (service, sent, signal) =>
      probeModel(service, sent, signal, { ...parts, clock, chat: config.chat }),
    listTools: (server, signal) => listMcpTools(server, { environment, isReleased, fetch }, signal),
    close: () => network.close(),
  }
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
