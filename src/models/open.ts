import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { ConfigEnvironment } from '../config/config-environment.ts'
import type { Config } from '../config/schema.ts'
import { isProviderName } from '../contract/providers.ts'
import type { EmbeddingService, LlmService, ServiceProblem } from '../contract/services.ts'
import { type ChatModel, openConfiguredModel, openServiceModel } from './chat/chat-model.ts'
import { openLearnedModels } from './chat/learned-models.ts'
import { knownModelFacts } from './chat/model-request.ts'
import { type Embedder, embedderFailure } from './embedder.ts'
import type { IsReleased, ModelParts } from './endpoint.ts'
import { openEndpointGuard, openPublicGuard } from './endpoint-guard.ts'
import { type EmbedderEndpoint, embeddingCallsTo, openHostedEmbedder } from './hosted-embedder.ts'
import type { McpAnswer, McpCall, McpTool } from './mcp/client.ts'
import { callMcpTool, listMcpTools, type McpEndpoint } from './mcp/http.ts'
import { McpAuthorization } from './mcp/mcp-authorization.ts'
import { McpProcesses } from './mcp/mcp-processes.ts'
import { createMockEmbedder } from './mock-embedder.ts'
import { ModelCatalogue } from './model-catalogue.ts'
import { type Outbound, openOutboundNetwork, type ResolveHost } from './outbound.ts'
import { probeModel } from './probe-model.ts'
import { findServiceProblem, problemOfLastRequest } from './service-problem.ts'

/** Access to models and tool servers, and to the network that reaches them. */
export interface Models {
  /** Network for libraries that need a `fetch`. Checked by the endpoint guard. Follows no redirect. */
  readonly fetch: typeof fetch
  /**
   * Like `fetch`, for URLs that a model chooses. Refuses private addresses unless the operator allowed them.
   */
  readonly fetchPublic: typeof fetch
  readonly outbound: Outbound
  /** Lists of models, by provider. */
  readonly catalogue: ModelCatalogue
  /** @throws validation_error  the URL may not be called; names the field */
  checkUrl(field: string, url: string): void
  /** @throws embedding_unavailable  the runtime cannot call this provider */
  openEmbedder(service: EmbeddingService): Embedder
  /** @throws llm_provider_unsupported  the runtime cannot call this provider */
  openChat(service: LlmService): ChatModel
  /**
   * Returns the chat model of the configuration.
   *
   * @throws chat_disabled  chat is disabled, or its credential is missing
   */
  runtimeChat(): ChatModel
  /**
   * Returns why a service cannot be used, or why its last request failed; null if no problem is known. Sends
   * no request.
   */
  chatProblem(service: LlmService): Promise<ServiceProblem | null>
  embeddingProblem(service: EmbeddingService): Promise<ServiceProblem | null>
  /** @throws llm_model_not_chat, llm_model_unavailable  see `probeModel` */
  probe(service: LlmService, sent: Partial<LlmService>, signal: AbortSignal): Promise<void>
  /** @throws McpFailure */
  listTools(server: McpEndpoint, signal: AbortSignal): Promise<readonly McpTool[]>
  /** @throws McpFailure */
  callTool(server: McpEndpoint, call: McpCall, signal: AbortSignal): Promise<McpAnswer>
  readonly authorization: McpAuthorization
  /** Like `listTools` and `callTool`, for servers that the configuration declares as commands. */
  readonly processes: Pick<McpProcesses, 'listTools' | 'callTool'>
  close(): Promise<void>
}

export interface ModelsParts {
  readonly config: Config
  readonly clock: Clock
  readonly log: Log
  /** Data directory, as an absolute path. Commands are started in it. */
  readonly dataDir: string
  readonly environment: ConfigEnvironment
  readonly isReleased: IsReleased
  /** Replacement for the network when models are called. */
  readonly outbound: Outbound | undefined
  readonly resolve: ResolveHost | undefined
}

/** Opens all parts without connecting or loading anything before the first call. */
export function openModels({
  config,
  clock,
  log,
  environment,
  isReleased,
  resolve,
  ...own
}: ModelsParts): Models {
  const guard = openEndpointGuard(config, environment)
  const network = openOutboundNetwork({ guard, resolve })
  const { fetch } = network
  const outside = openOutboundNetwork({ guard: openPublicGuard(config), resolve })
  const parts = { environment, isReleased, outbound: own.outbound ?? network.send }
  const learned = openLearnedModels({ clock, outbound: parts.outbound })
  const chatParts = { ...parts, learned, clock, chat: config.chat }
  const processes = new McpProcesses({ environment, clock, log, folder: own.dataDir })
  return {
    fetch,
    fetchPublic: outside.fetch,
    outbound: parts.outbound,
    catalogue: new ModelCatalogue({ ...parts, clock }),
    checkUrl: (field, url) => guard.checkUrl(field, url),
    openEmbedder: service => openEmbedder(service, parts),
    openChat: service => openServiceModel(service, chatParts),
    runtimeChat: () => openConfiguredModel(chatParts),
    chatProblem: async service =>
      (await findServiceProblem(async () => openServiceModel(service, chatParts).chat.check())) ??
      problemOfLastRequest(knownModelFacts(service, chatParts).failure),
    embeddingProblem: service =>
      findServiceProblem(async () => {
        if (service.provider !== 'mock') await embeddingCallsTo(embedderEndpoint(service, parts))
      }),
    probe: (service, sent, signal) => probeModel(service, sent, signal, chatParts),
    listTools: (server, signal) => listMcpTools(server, { environment, isReleased, fetch }, signal),
    callTool: (server, call, signal) => callMcpTool(server, call, { environment, isReleased, fetch }, signal),
    authorization: new McpAuthorization({ environment, isReleased, fetch, clock, guard }),
    processes,
    async close() {
      await processes.close()
      await network.close()
      await outside.close()
    },
  }
}

/**
 * Opens the embedder of a service. Sends no request and resolves no credential before the first call.
 *
 * @throws embedding_unavailable  the runtime cannot call this provider
 */
export function openEmbedder(service: EmbeddingService, parts: ModelParts): Embedder {
  if (service.provider === 'mock') return createMockEmbedder(service.embeddingDimension)
  return openHostedEmbedder(embedderEndpoint(service, parts), parts.outbound)
}

/** @throws embedding_unavailable  the runtime cannot call this provider */
function embedderEndpoint(
  service: EmbeddingService,
  { environment, isReleased }: ModelParts,
): EmbedderEndpoint {
  const { provider } = service
  if (!isProviderName(provider))
    throw embedderFailure(service, 'has a provider that this runtime cannot call', {
      hint: 'Use provider openai, openrouter, cohere or ollama; any OpenAI-compatible server works with endpointBaseUrl.',
    })
  return { service, provider, environment, isReleased }
}
