import { collect } from '../../client/client.ts'
import { type Agent, type AgentTemplate, agents, agentTemplates } from '../../contract/agents.ts'
import { isId } from '../id.ts'
import { pickResource, type ResolveContext, type ResourceKind, resolveWorkspace } from './resolve.ts'

const agentKind: ResourceKind = {
  noun: 'agent',
  notFoundCode: 'agent_not_found',
  listCommand: 'wb agents list',
  createCommands: ['wb agents create --template bobby'],
}
const templateKind: ResourceKind = {
  noun: 'agent template',
  notFoundCode: 'agent_template_not_found',
  listCommand: 'wb agents templates',
  createCommands: [],
}

/** Returns the agents of a workspace. */
export async function listAgents({ client }: ResolveContext, workspaceId: string): Promise<Agent[]> {
  return collect(client.items(agents.list, { params: { workspaceId } }))
}

/**
 * Finds an agent by ID or name. Without `nameOrId`, returns the only agent of the workspace, or lets the user choose.
 *
 * @throws WbError agent_not_found  no agent matches; suggests a similar name
 * @throws UsageError               several agents match
 */
export async function findAgent(context: ResolveContext, nameOrId?: string): Promise<Agent> {
  const { workspaceId } = await resolveWorkspace(context)
  if (nameOrId && isId(nameOrId))
    return context.client.call(agents.show, { params: { workspaceId, agentId: nameOrId } })
  const all = await listAgents(context, workspaceId)
  const candidates = all.map(row => ({ row, id: row.agentId, name: row.name }))
  return pickResource(
    candidates,
    matchIgnoringCase(all, nameOrId),
    { ...agentKind, selectCommand: context.commandWithName },
    context.promptForChoice,
  )
}

/** If exactly one agent has the name in another case (`maven` for Maven), returns its ID. Otherwise, returns the input. */
function matchIgnoringCase(all: readonly Agent[], nameOrId: string | undefined): string | undefined {
  if (nameOrId === undefined || all.some(({ name }) => name === nameOrId)) return nameOrId
  const matches = all.filter(({ name }) => name.toLowerCase() === nameOrId.toLowerCase())
  return matches.length === 1 ? matches[0]!.agentId : nameOrId
}

/**
 * Finds an agent template by ID or name.
 *
 * @throws WbError agent_template_not_found  no template matches; suggests a similar name
 */
export async function findTemplate({ client }: ResolveContext, nameOrId: string): Promise<AgentTemplate> {
  const { items } = await client.call(agentTemplates.list, {})
  const candidates = items.map(row => ({ row, id: row.templateId, name: row.name }))
  return pickResource(candidates, nameOrId, templateKind, undefined)
}
