import type { Clock } from '../base/clock.ts'
import type { Log } from '../base/log.ts'
import type { Pager } from '../storage/cursor.ts'
import type { RowStore } from '../storage/rows.ts'
import { Agents } from './agents.ts'
import { Conversations } from './conversations.ts'
import { Messages } from './messages.ts'
import { agentHandlers, conversationHandlers, messageHandlers, templateHandlers } from './routes.ts'
import { type ListRemoteTools, RemoteTools } from './tools/remote.ts'
import { type ToolSettings, Tools } from './tools/tools.ts'

export interface AgentParts {
  readonly rows: RowStore
  readonly pager: Pager
  readonly clock: Clock
  readonly log: Log
  readonly settings: ToolSettings
  readonly listTools: ListRemoteTools
}

/** Everything about agents, by topic. */
export function openAgents(parts: AgentParts) {
  const remote = new RemoteTools({ ...parts, ttlMs: parts.settings.mcp.discoveryTtlMs })
  const tools = new Tools({ ...parts, remote })
  const conversations = new Conversations(parts)
  return {
    agentTemplates: templateHandlers(parts.rows),
    agents: agentHandlers(new Agents({ ...parts, tools }), tools),
    conversations: conversationHandlers(conversations),
    messages: messageHandlers(new Messages({ ...parts, conversations })),
  }
}
