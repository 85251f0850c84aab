import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { ConfigEnvironment } from '../config/config-environment.ts'
import type { Config } from '../config/schema.ts'
import { isProviderName, localProvider } from '../contract/providers.ts'
import type { EmbeddingService, LlmService, RerankingService, ServiceProblem } from '../contract/services.ts'
import { LocalModels } from '../local-models/local-models.ts'
import { type ChatModel, openConfiguredModel, openServiceModel } from './chat/chat-model.ts'
import { openLearnedModels } from './chat/learned-models.ts'
import { knownModelFacts } from './chat/model-request.ts'
import { type Embedder, embedderFailure } from './embedder.ts'
import type { IsReleased, ModelDependencies } from './endpoint.ts'
import { openEndpointGuard, openPublicGuard } from './endpoint-guard.ts'
import { type EmbedderEndpoint, embeddingCallSettings, openHostedEmbedder } from './hosted-embedder.ts'
import { checkLocalService, openLocalEmbedder, requireLocalModel } from './local-embedder.ts'
import type { McpCall, McpTool, McpToolResult } from './mcp/client.ts'
import { callMcpTool, listMcpTools, type McpEndpoint } from './mcp/http.ts'
import { McpAuthorization } from './mcp/mcp-authorization.ts'
import { McpProcesses } from './mcp/mcp-processes.ts'
import { createMockEmbedder } from './mock-embedder.ts'
import { ModelCatalog } from './model-catalog.ts'
import { type Outbound, openOutboundNetwork, type ResolveHost } from './outbound.ts'
import { probeModel } from './probe-model.ts'
import { RequestPaces } from './request-paces.ts'
import { checkReranker, openReranker, type Reranker } from './reranker.ts'
import { RerankerPauses } from './reranker-pauses.ts'
import { findServiceProblem, problemOfLastRequest } from './service-problem.ts'

/** Access to models, MCP servers, and the network. */
export interface Models {
  /** A `fetch` for libraries. The endpoint guard checks its connections. Does not follow redirects. */
  readonly fetch: typeof fetch
  /**
   * Like `fetch`, but for URLs that a model chooses. Refuses private addresses unless the operator allowed them.
   */
  readonly fetchPublic: typeof fetch
  readonly outbound: Outbound
  readonly catalog: ModelCatalog
  /** @throws validation_error  the runtime may not call the URL; the message contains the name of the field */
  checkUrl(field: string, url: string): void
  /**
   * Checks an embedding service before it is written.
   *
   * @param sent  fields that the caller sent
   * @throws validation_error  its model was not added to this runtime, or has another dimension
   */
  checkEmbedding(service: EmbeddingService, sent: Partial<EmbeddingService>): Promise<void>
  /** @throws embedding_unavailable  the runtime cannot call the provider of the service */
  openEmbedder(service: EmbeddingService): Embedder
  openReranker(service: RerankingService): Reranker
  /** @throws llm_provider_unsupported  the runtime cannot call the provider of the service */
  openChat(service: LlmService): ChatModel
  /**
   * Returns the chat model of the configuration.
   *
   * @throws chat_disabled  chat is disabled, or its credential is missing
   */
  runtimeChat(): ChatModel
  /**
   * Returns the reason why an LLM service cannot be used, or why its last request failed; null if no problem is known.
   * Does not send a request.
   */
  chatProblem(service: LlmService): Promise<ServiceProblem | null>
  /** Returns the reason why an embedding service cannot be used; null if no problem is known. Sends no request. */
  embeddingProblem(service: EmbeddingService): Promise<ServiceProblem | null>
  /** Like {@link embeddingProblem}, for a reranking service. */
  rerankingProblem(service: RerankingService): Promise<ServiceProblem | null>
  /** @see probeModel */
  probe(service: LlmService, changes: Partial<LlmService>, signal: AbortSignal): Promise<void>
  /** @throws McpFailure */
  listTools(server: McpEndpoint, signal: AbortSignal): Promise<readonly McpTool[]>
  /** @throws McpFailure */
  callTool(server: McpEndpoint, call: McpCall, signal: AbortSignal): Promise<McpToolResult>
  readonly authorization: McpAuthorization
  /** Access to the MCP servers that the configuration declares as commands. */
  readonly processes: Pick<McpProcesses, 'listTools' | 'callTool'>
  close(): Promise<void>
}

export interface ModelsDependencies {
  readonly config: Config
  readonly clock: Clock
  readonly log: Log
  /** Absolute path of the data directory. It is the working directory of MCP servers that are commands. */
  readonly dataDir: string
  readonly environment: ConfigEnvironment
  readonly isReleased: IsReleased
  /** Sends requests to models. If undefined, the network is used. */
  readonly outbound: Outbound | undefined
  readonly resolve: ResolveHost | undefined
  /** Folder of onnxruntime-node; by default the one that is installed for this package. */
  readonly nativeRuntime?: string | undefined
}

/** Opens the access to models and MCP servers. Opens no connection and loads no model before the first call. */
export function openModels({
  config,
  clock,
  log,
  environment,
  isReleased,
  resolve,
  ...rest
}: ModelsDependencies): Models {
  const guard = openEndpointGuard(config, environment)
  const network = openOutboundNetwork({ guard, resolve })
  const { fetch } = network
  const publicNetwork = openOutboundNetwork({ guard: openPublicGuard(config), resolve })
  const deps = { environment, isReleased, outbound: rest.outbound ?? network.send }
  const learned = openLearnedModels({ clock, outbound: deps.outbound })
  const chatDeps = { ...deps, learned, clock, chat: config.chat }
  const paces = new RequestPaces()
  const rerankDeps = { ...chatDeps, pauses: new RerankerPauses(clock) }
  const processes = new McpProcesses({ environment, clock, log, folder: rest.dataDir })
  const local = new LocalModels({ dataDir: rest.dataDir, runtime: rest.nativeRuntime })
  return {
    fetch,
    fetchPublic: publicNetwork.fetch,
    outbound: deps.outbound,
    catalog: new ModelCatalog({ ...deps, clock }),
    checkUrl: (field, url) => guard.checkUrl(field, url),
    checkEmbedding: async (service, sent) => checkLocalService(service, sent, local),
    openEmbedder: service =>
      service.provider === localProvider
        ? openLocalEmbedder(service, local)
        : openEmbedder(service, deps, paces),
    openReranker: service => openReranker(service, rerankDeps),
    openChat: service => openServiceModel(service, chatDeps),
    runtimeChat: () => openConfiguredModel(chatDeps),
    chatProblem: async service =>
      (await findServiceProblem(async () => openServiceModel(service, chatDeps).chat.check())) ??
      problemOfLastRequest(knownModelFacts(service, chatDeps).failure),
    embeddingProblem: service =>
      findServiceProblem(async () => {
        if (service.provider === localProvider) requireLocalModel(service, local)
        else if (service.provider !== 'mock') await embeddingCallSettings(embedderEndpoint(service, deps))
      }),
    rerankingProblem: service => findServiceProblem(() => checkReranker(service, rerankDeps)),
    probe: (service, changes, signal) => probeModel(service, changes, signal, chatDeps),
    listTools: (server, signal) => listMcpTools(server, { environment, isReleased, fetch }, signal),
    callTool: (server, call, signal) => callMcpTool(server, call, { environment, isReleased, fetch }, signal),
    authorization: new McpAuthorization({ environment, isReleased, fetch, clock, guard }),
    processes,
    async close() {
      await local.close()
      await processes.close()
      await network.close()
      await publicNetwork.close()
    },
  }
}

/**
 * Opens an embedder for a service. Sends no request and resolves no credential before the first call.
 *
 * @throws embedding_unavailable  the runtime cannot call this provider
 */
export function openEmbedder(
  service: EmbeddingService,
  deps: ModelDependencies,
  paces = new RequestPaces(),
): Embedder {
  if (service.provider === 'mock') return createMockEmbedder(service.embeddingDimension)
  const pace = paces.of(`${service.workspaceId}/${service.embeddingServiceId}`)
  return openHostedEmbedder(embedderEndpoint(service, deps), deps.outbound, pace)
}

/** @throws embedding_unavailable  the runtime cannot call this provider */
function embedderEndpoint(
  service: EmbeddingService,
  { environment, isReleased }: ModelDependencies,
): EmbedderEndpoint {
  const { provider } = service
  if (!isProviderName(provider))
    throw embedderFailure(service, 'has a provider that this runtime cannot call', {
      hint: 'Use the provider openai, openrouter, cohere, ollama or onnx. For other OpenAI-compatible servers, set endpointBaseUrl.',
    })
  return { service, provider, environment, isReleased }
}
