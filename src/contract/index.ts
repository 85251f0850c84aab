import { accessTools } from './access-tools.ts'
import { agents, agentTemplates } from './agents.ts'
import { attachments } from './attachments.ts'
import { audit } from './audit.ts'
import { auth } from './auth.ts'
import { chat } from './chat.ts'
import { chunkPreview } from './chunk-preview.ts'
import { connect } from './connect.ts'
import { conversations, messages } from './conversations.ts'
import { documents } from './documents.ts'
import { filters } from './filters.ts'
import { folders } from './folders.ts'
import { jobs } from './jobs.ts'
import { apiKeys } from './keys.ts'
import { kb } from './knowledge.ts'
import { mcp } from './mcp.ts'
import { mcpServers } from './mcp-servers.ts'
import { llmModels } from './models.ts'
import { openai } from './openai.ts'
import { playground } from './playground.ts'
import { policy } from './policy.ts'
import { principals } from './principals.ts'
import { protectedResources } from './protected-resource.ts'
import { records } from './records.ts'
import { secretReleases } from './releases.ts'
import type { Topic } from './route.ts'
import { monitoringRoutes, runtimeRoutes } from './runtime-routes.ts'
import {
  chunkerRoutes,
  chunkingServices,
  embeddingServices,
  llmServices,
  rerankingServices,
} from './services.ts'
import { setup } from './setup.ts'
import { trash } from './trash.ts'
import { workspaces } from './workspaces.ts'

/** All routes, by topic. */
export const api = {
  operational: runtimeRoutes,
  operation: monitoringRoutes,
  setup,
  auth,
  protectedResources,
  workspaces,
  connect,
  playground,
  apiKeys,
  audit,
  principals,
  policy,
  accessTools,
  chunkers: chunkerRoutes,
  chunkPreview,
  chunkingServices,
  embeddingServices,
  rerankingServices,
  llmServices,
  llmModels,
  secretReleases,
  mcp,
  mcpServers,
  kb,
  filters,
  folders,
  documents,
  trash,
  records,
  jobs,
  agentTemplates,
  agents,
  conversations,
  messages,
  attachments,
  chat,
  openai,
} satisfies Record<string, Topic>
