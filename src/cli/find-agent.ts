import { type Agent, type AgentTemplate, agents, agentTemplates } from '../contract/agents.ts'
import { type Conversation, conversations } from '../contract/conversations.ts'
import { kb } from '../contract/knowledge.ts'
import { limits } from '../contract/limits.ts'
import { llmServices } from '../contract/services.ts'
import { everything, isId, type Kind, type Named, pick, type Resolving, resolveWorkspace } from './resolve.ts'

const agentKind: Kind = {
  one: 'agent',
  code: 'agent_not_found',
  list: 'wb agents list',
  create: ['wb agents create --template bobby'],
}
const conversationKind: Kind = {
  one: 'conversation',
  code: 'conversation_not_found',
  list: 'wb conversations list',
  create: [],
}
const templateKind: Kind = {
  one: 'agent template',
  code: 'agent_template_not_found',
  list: 'wb agents templates',
  create: [],
}
const llmServiceKind: Kind = {
  one: 'LLM service',
  code: 'llm_service_not_found',
  list: 'wb services list',
  create: ['wb services create'],
}
const knowledgeBaseKind: Kind = {
  one: 'knowledge base',
  code: 'knowledge_base_not_found',
  list: 'wb kb list',
  create: ['wb kb create handbook'],
}

const query = { limit: limits.pageMax }

/** Agents by id and name. */
export async function namedAgents({ client }: Resolving, workspaceId: string): Promise<Agent[]> {
  return everything(client.items(agents.list, { params: { workspaceId }, query }))
}

/**
 * The agent that is meant: by id or name, else the only one of the workspace.
 *
 * @throws WbError agent_not_found  with what was probably meant
 * @throws UsageError               several could be meant
 */
export async function resolveAgent(resolving: Resolving, wanted?: string): Promise<Agent> {
  const { workspaceId } = await resolveWorkspace(resolving)
  if (wanted && isId(wanted))
    return resolving.client.call(agents.show, { params: { workspaceId, agentId: wanted } })
  const all = await namedAgents(resolving, workspaceId)
  const named = all.map(row => ({ row, id: row.agentId, name: row.name }))
  return pick(named, wanted, { ...agentKind, naming: resolving.withBase }, resolving.choose)
}

/** What a conversation is called: its title, else its id. */
export function conversationName({ title, conversationId }: Conversation): string {
  return title ?? conversationId
}

/**
 * The conversation that is meant: by id or title, else the only one.
 *
 * @throws WbError conversation_not_found, agent_not_found
 * @throws UsageError  several could be meant
 */
export async function resolveConversation(resolving: Resolving, wanted?: string): Promise<Conversation> {
  const { workspaceId } = await resolveWorkspace(resolving)
  const all = await everything(
    resolving.client.items(conversations.listAll, { params: { workspaceId }, query }),
  )
  const named = all.map(row => ({ row, id: row.conversationId, name: conversationName(row) }))
  return pick(named, wanted, { ...conversationKind, naming: resolving.withBase }, resolving.choose)
}

/** @throws WbError agent_template_not_found  with what was probably meant */
export async function resolveTemplate(resolving: Resolving, wanted: string): Promise<AgentTemplate> {
  const { items } = await resolving.client.call(agentTemplates.list, {})
  const named = items.map(row => ({ row, id: row.templateId, name: row.name }))
  return pick(named, wanted, templateKind, undefined)
}

/**
 * The id of an LLM service: by id or name, else of the only one, or the one that the person chooses; null where there
 * is none.
 *
 * @throws WbError llm_service_not_found
 * @throws UsageError  several could be meant
 */
export async function resolveLlmService(
  resolving: Resolving,
  workspaceId: string,
  wanted?: string,
): Promise<string | null> {
  const request = { params: { workspaceId }, query }
  const all = await everything(resolving.client.items(llmServices.list, request))
  if (all.length === 0 && wanted === undefined) return null
  const named = all.map(row => ({ row: row.llmServiceId, id: row.llmServiceId, name: row.name }))
  const naming = (name: string) => `--llm ${name}`
  return pick(named, wanted, { ...llmServiceKind, naming }, resolving.choose)
}

/** @throws WbError knowledge_base_not_found  with what was probably meant */
export async function knowledgeBaseIds(
  { client }: Resolving,
  workspaceId: string,
  wanted: readonly string[] | undefined,
): Promise<string[] | undefined> {
  if (wanted === undefined || wanted.length === 0) return undefined
  const all = await everything(client.items(kb.list, { params: { workspaceId }, query }))
  const named = all.map((row): Named & { row: string } => {
    return { row: row.knowledgeBaseId, id: row.knowledgeBaseId, name: row.name }
  })
  return Promise.all(wanted.map(one => pick(named, one, knowledgeBaseKind, undefined)))
}
