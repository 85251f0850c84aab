import type { Client } from '../../client/client.ts'
import type { Agent } from '../../contract/agents.ts'
import { limits } from '../../contract/limits.ts'
import { llmServices } from '../../contract/services.ts'
import { ofServer } from '../../contract/tool-ids.ts'
import type { Names } from '../shown/tool.ts'
import { everyServer } from './mcp-server.ts'
import { everyBase, everything, isId } from './resolve.ts'

/** What an agent is bound to, as people call it. */
export interface AgentNames {
  /** Its id where it is gone; undefined where the agent names none. */
  readonly llmService: string | undefined
  readonly knowledgeBases: Names
  /** MCP servers. */
  readonly servers: Names
}

/** Names of what an agent names by id. Only what it names is asked for. */
export async function namesOf(client: Client, agent: Agent): Promise<AgentNames> {
  const { workspaceId, llmServiceId, knowledgeBaseIds } = agent
  const [llmService, knowledgeBases, servers] = await Promise.all([
    llmServiceId === null ? undefined : llmServiceName(client, workspaceId, llmServiceId),
    baseNames(client, workspaceId, knowledgeBaseIds),
    serverNames(client, agent),
  ])
  return { llmService, knowledgeBases, servers }
}

/** Names of the knowledge bases of a workspace, where any is needed. */
export async function baseNames(
  client: Client,
  workspaceId: string,
  needed: readonly string[],
): Promise<Names> {
  if (needed.length === 0) return {}
  const all = await everyBase(client, workspaceId)
  return Object.fromEntries(all.map(({ knowledgeBaseId, name }) => [knowledgeBaseId, name]))
}

async function llmServiceName(client: Client, workspaceId: string, llmServiceId: string): Promise<string> {
  const request = { params: { workspaceId }, query: { limit: limits.pageMax } }
  const all = await everything(client.items(llmServices.list, request))
  return all.find(service => service.llmServiceId === llmServiceId)?.name ?? llmServiceId
}

async function serverNames(client: Client, { workspaceId, toolIds, toolRules = {} }: Agent): Promise<Names> {
  const isNeeded = [...toolIds, ...Object.keys(toolRules)].some(id => isId(ofServer(id)?.server ?? ''))
  if (!isNeeded) return {}
  const all = await everyServer(client, workspaceId)
  return Object.fromEntries(all.map(({ mcpServerId, label }) => [mcpServerId, label]))
}
