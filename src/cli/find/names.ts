import { type Client, everything } from '../../client/client.ts'
import type { Agent } from '../../contract/agents.ts'
import { llmServices } from '../../contract/services.ts'
import { ofServer } from '../../contract/tool-ids.ts'
import { isId } from '../id.ts'
import type { AgentNames } from '../shown/agent.ts'
import { type Names, nameIn } from '../shown/tool.ts'
import { everyServer } from './mcp-server.ts'
import { everyBase } from './resolve.ts'

/** Looks up the names of the resources that an agent refers to by ID. Requests only the kinds it uses. */
export async function namesOf(client: Client, agent: Agent): Promise<AgentNames> {
  const { workspaceId, llmServiceId, knowledgeBaseIds } = agent
  const [services, knowledgeBases, servers] = await Promise.all([
    llmServiceNames(client, workspaceId, [agent]),
    baseNames(client, workspaceId, knowledgeBaseIds),
    serverNames(client, agent),
  ])
  const llmService = llmServiceId === null ? undefined : (nameIn(services, llmServiceId) ?? llmServiceId)
  return { llmService, knowledgeBases, servers }
}

/** Returns the names of the knowledge bases of a workspace by ID. Returns none if no ID is needed. */
export async function baseNames(
  client: Client,
  workspaceId: string,
  needed: readonly string[],
): Promise<Names> {
  if (needed.length === 0) return {}
  const all = await everyBase(client, workspaceId)
  return Object.fromEntries(all.map(({ knowledgeBaseId, name }) => [knowledgeBaseId, name]))
}

/**
 * Returns the names of the LLM services of a workspace by ID. Returns none if no agent has an LLM service.
 */
export async function llmServiceNames(
  client: Client,
  workspaceId: string,
  agents: readonly Agent[],
): Promise<Names> {
  if (agents.every(({ llmServiceId }) => llmServiceId === null)) return {}
  const request = { params: { workspaceId } }
  const all = await everything(client.items(llmServices.list, request))
  return Object.fromEntries(all.map(({ llmServiceId, name }) => [llmServiceId, name]))
}

async function serverNames(client: Client, { workspaceId, toolIds, toolRules = {} }: Agent): Promise<Names> {
  const isNeeded = [...toolIds, ...Object.keys(toolRules)].some(id => isId(ofServer(id)?.server ?? ''))
  if (!isNeeded) return {}
  const all = await everyServer(client, workspaceId)
  return Object.fromEntries(all.map(({ mcpServerId, label }) => [mcpServerId, label]))
}
