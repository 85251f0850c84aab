import { type Client, collect } from '../../client/client.ts'
import type { Agent } from '../../contract/agents.ts'
import { llmServices } from '../../contract/services.ts'
import { parseMcpToolId } from '../../contract/tool-ids.ts'
import type { AgentNames } from '../fields/agent.ts'
import { lookUpName, type NamesById } from '../fields/tool-name.ts'
import { isId } from '../id.ts'
import { listMcpServers } from './mcp-server.ts'
import { listKnowledgeBases } from './resolve.ts'

/** Looks up the names of the resources to which an agent refers by ID. Requests only the lists that are necessary. */
export async function lookUpAgentNames(client: Client, agent: Agent): Promise<AgentNames> {
  const { workspaceId, llmServiceId, knowledgeBaseIds } = agent
  const [services, knowledgeBases, servers] = await Promise.all([
    lookUpLlmServiceNames(client, workspaceId, [agent]),
    lookUpBaseNames(client, workspaceId, knowledgeBaseIds),
    lookUpServerNames(client, agent),
  ])
  const llmService = llmServiceId === null ? undefined : (lookUpName(services, llmServiceId) ?? llmServiceId)
  return { llmService, knowledgeBases, servers }
}

/** Returns the names of all knowledge bases of a workspace by ID. Sends no request if `ids` is empty. */
export async function lookUpBaseNames(
  client: Client,
  workspaceId: string,
  ids: readonly string[],
): Promise<NamesById> {
  if (ids.length === 0) return {}
  const all = await listKnowledgeBases(client, workspaceId)
  return Object.fromEntries(all.map(({ knowledgeBaseId, name }) => [knowledgeBaseId, name]))
}

/**
 * Returns the names of all LLM services of a workspace by ID. Sends no request if no agent has an LLM service.
 */
export async function lookUpLlmServiceNames(
  client: Client,
  workspaceId: string,
  agents: readonly Agent[],
): Promise<NamesById> {
  if (agents.every(({ llmServiceId }) => llmServiceId === null)) return {}
  const request = { params: { workspaceId } }
  const all = await collect(client.items(llmServices.list, request))
  return Object.fromEntries(all.map(({ llmServiceId, name }) => [llmServiceId, name]))
}

async function lookUpServerNames(
  client: Client,
  { workspaceId, toolIds, toolRules = {} }: Agent,
): Promise<NamesById> {
  const isNeeded = [...toolIds, ...Object.keys(toolRules)].some(id => isId(parseMcpToolId(id)?.server ?? ''))
  if (!isNeeded) return {}
  const all = await listMcpServers(client, workspaceId)
  return Object.fromEntries(all.map(({ mcpServerId, label }) => [mcpServerId, label]))
}
