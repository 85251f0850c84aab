import { member, needs, type WorkspaceAccess } from './access.ts'

/**
 * Access rules of the MCP tools that the runtime offers.
 *
 * @see docs/requirements.md#S5.5-21
 */
export const mcpToolAccess = {
  list_knowledge_bases: member('read:content'),
  list_agents: member(null),
  get_agent: member(null),
  list_documents: member('read:content'),
  get_document: member('read:content'),
  search_kb: member('read:content'),
  list_services: member('read:content'),
  list_chats: member('read:chat'),
  list_chat_messages: member('read:chat'),
  chat_send: member('read:chat'),
  run_agent: member('read:chat'),
  ingest_text: needs('write:ingest'),
  delete_document: needs('write:ingest'),
  create_knowledge_base: needs('write:kb'),
  delete_knowledge_base: needs('write:kb'),
} as const satisfies Record<string, WorkspaceAccess>

/** Access rule of MCP resources. It equals the rule of the routes that list and read documents. */
export const mcpResourceAccess: WorkspaceAccess = member('read:content')

/** Tools that send a message to an agent. They require only read access, although they store the conversation. */
export const mcpChatTools: readonly string[] = [
  'chat_send',
  'run_agent',
] satisfies (keyof typeof mcpToolAccess)[]

/**
 * Access rule for agents to call external tools on behalf of a caller.
 *
 * @see docs/requirements.md#S5.5-26
 */
export const externalToolAccess: WorkspaceAccess = needs('tools:invoke').orElse('write')
