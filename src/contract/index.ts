import { agents, agentTemplates } from './agents.ts'
import { audit } from './audit.ts'
import { auth } from './auth.ts'
import { conversations, messages } from './conversations.ts'
import { documents, records } from './documents.ts'
import { filters } from './filters.ts'
import { apiKeys } from './keys.ts'
import { kb } from './knowledge.ts'
import { mcpServers } from './mcp-servers.ts'
import { llmModels } from './models.ts'
import { operational } from './operational.ts'
import { secretReleases } from './releases.ts'
import type { Topic } from './route.ts'
import { chunkers, chunkingServices, embeddingServices, llmServices, rerankingServices } from './services.ts'
import { setup } from './setup.ts'
import { workspaces } from './workspaces.ts'

/** The whole surface, by topic. */
export const api = {
  operational,
  setup,
  auth,
  workspaces,
  apiKeys,
  audit,
  chunkers,
  chunkingServices,
  embeddingServices,
  rerankingServices,
  llmServices,
  llmModels,
  secretReleases,
  mcpServers,
  kb,
  filters,
  documents,
  records,
  agentTemplates,
  agents,
  conversations,
  messages,
} satisfies Record<string, Topic>
