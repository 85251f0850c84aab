import { member, needs, type WorkspaceAccess } from './access.ts'

/**
 * Scopes for the runtime's own MCP tools, in addition to access to the workspace.
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

/** Access rule of resources, equal to that of the routes that list and read documents. */
export const mcpResourceAccess: WorkspaceAccess = member('read:content')

/** Tools that ask an agent. They need only read access, although the conversation is stored. */
export const mcpChatTools: readonly string[] = [
  'chat_send',
  'run_agent',
] satisfies (keyof typeof mcpToolAccess)[]

/**
 * Access rule for callers whose agents use external tools.
 *
 * @see docs/requirements.md#S5.5-26
 */
export const externalToolAccess: WorkspaceAccess = needs('tools:invoke').orElse('write')
