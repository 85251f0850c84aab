import { agents, agentTemplates } from './agents.ts'
import { audit } from './audit.ts'
import { auth } from './auth.ts'
import { conversations, messages } from './conversations.ts'
import { documents, records } from './documents.ts'
import { filters } from './filters.ts'
import { apiKeys } from './keys.ts'
import { kb } from './knowledge.ts'
import { operational } from './operational.ts'
import type { Topic } from './route.ts'
import { chunkers, chunkingServices, embeddingServices } from './services.ts'
import { workspaces } from './workspaces.ts'

/** The whole surface, by topic. */
export const api = {
  operational,
  auth,
  workspaces,
  apiKeys,
  audit,
  chunkers,
  chunkingServices,
  embeddingServices,
  kb,
  filters,
  documents,
  records,
  agentTemplates,
  agents,
  conversations,
  messages,
} satisfies Record<string, Topic>
