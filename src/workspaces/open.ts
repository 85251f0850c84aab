import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Config } from '../config/schema.ts'
import { builtInProvider } from '../contract/providers.ts'
import type {
  ChunkingCreate,
  ChunkingService,
  EmbeddingCreate,
  EmbeddingService,
  LlmCreate,
  LlmService,
  RerankingCreate,
  RerankingService,
} from '../contract/services.ts'
import type { Models } from '../models/open.ts'
import type { Pager } from '../storage/cursor.ts'
import type { RowStore } from '../storage/rows.ts'
import { Connections, type ConnectionsDependencies } from './connections.ts'
import type { ContentStores } from './content-stores.ts'
import { McpServers, type McpServersDependencies } from './mcp-servers.ts'
import type { McpSignIns } from './mcp-sign-ins.ts'
import { McpTraffic } from './mcp-traffic.ts'
import type { PurgeStep } from './remove-workspace.ts'
import {
  connectHandlers,
  llmModelHandlers,
  mcpServerHandlers,
  playgroundHandlers,
  releaseHandlers,
  workspaceHandlers,
} from './routes.ts'
import type { SecretReleases } from './secret-releases.ts'
import { chunkingKind, embeddingKind, llmKind, rerankingKind } from './service-kinds.ts'
import { chunkingHandlers, embeddingHandlers, llmHandlers, rerankingHandlers } from './service-routes.ts'
import { Services } from './services.ts'
import { type RefitWorkspaceAfter, Workspaces } from './workspaces.ts'

export interface WorkspacesDependencies {
  readonly rows: RowStore
  readonly pager: Pager
  readonly clock: Clock
  readonly log: Log
  readonly config: Config
  readonly stores: ContentStores
  readonly releases: SecretReleases
  readonly models: Pick<
    Models,
    | 'catalog'
    | 'checkEmbedding'
    | 'checkUrl'
    | 'probe'
    | 'chatProblem'
    | 'embeddingProblem'
    | 'rerankingProblem'
  >
  readonly listTools: McpServersDependencies['listTools']
  readonly signIns: McpSignIns
  /** Returns the names of the tools that MCP offers to the caller. */
  readonly listExposedTools: ConnectionsDependencies['listTools']
  /** Steps that delete the content that other modules store for a workspace. */
  readonly purge: readonly PurgeStep[]
  /** Prepares the rows of a workspace for row-level access. */
  readonly publish: (workspaceId: string, signal: AbortSignal) => Promise<void>
  readonly refitAfter: RefitWorkspaceAfter
}

/** Opens workspaces, their services and connections. Returns the route handlers by topic. */
export function openWorkspaces(deps: WorkspacesDependencies) {
  const { clock, config, stores, releases, models } = deps
  const { checkUrl } = models
  const workspaces = new Workspaces(deps)
  const services = { ...deps, checkUrl }
  const chunking = new Services<ChunkingService, ChunkingCreate>(chunkingKind, services)
  const embedding = new Services<EmbeddingService, EmbeddingCreate>(embeddingKind, {
    ...services,
    checkBeforeWrite: models.checkEmbedding,
  })
  const reranking = new Services<RerankingService, RerankingCreate>(rerankingKind, services)
  const llm = new Services<LlmService, LlmCreate>(llmKind, { ...services, checkBeforeWrite: models.probe })
  const traffic = new McpTraffic(clock)
  const connections = new Connections({
    ...deps,
    traffic,
    mcpEnabled: config.mcp.enabled,
    listTools: deps.listExposedTools,
  })
  return {
    chunking,
    embedding,
    reranking,
    traffic,
    /** Deletes the workspaces of kind `mock`, which exist only until their server stops. */
    deleteEphemeral: () => workspaces.deleteEphemeral(),
    handlers: {
      workspaces: workspaceHandlers(workspaces, stores),
      connect: connectHandlers(connections),
      playground: playgroundHandlers(workspaces, { stores, clock }),
      chunkingServices: chunkingHandlers(chunking),
      embeddingServices: embeddingHandlers(embedding, async service =>
        service.provider === builtInProvider ? null : models.embeddingProblem(service),
      ),
      rerankingServices: rerankingHandlers(reranking, models.rerankingProblem),
      llmServices: llmHandlers(llm, models.chatProblem),
      llmModels: llmModelHandlers(models, config.chat.provider),
      secretReleases: releaseHandlers(releases),
      mcpServers: mcpServerHandlers(new McpServers({ ...deps, checkUrl }), deps.signIns),
    },
  }
}
