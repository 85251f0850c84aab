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
 * Finds an agent by ID or name. Without one, returns the only agent of the workspace.
 *
 * @throws WbError agent_not_found  when no agent matches; suggests a similar name
 * @throws UsageError               when several agents match
 */
export async function findAgent(context: ResolveContext, nameOrId?: string): Promise<Agent> {
  const { workspaceId } = await resolveWorkspace(context)
  if (nameOrId && isId(nameOrId))
    return context.client.call(agents.show, { params: { workspaceId, agentId: nameOrId } })
  const all = await listAgents(context, workspaceId)
  const named = all.map(row => ({ row, id: row.agentId, name: row.name }))
  return pickResource(
    named,
    matchIgnoringCase(all, nameOrId),
    { ...agentKind, selectCommand: context.commandWithBase },
    context.promptForChoice,
  )
}

/** Returns the ID of the only agent whose name matches regardless of case (`maven` for Maven), else the input. */
function matchIgnoringCase(all: readonly Agent[], nameOrId: string | undefined): string | undefined {
  if (nameOrId === undefined || all.some(({ name }) => name === nameOrId)) return nameOrId
  const matches = all.filter(({ name }) => name.toLowerCase() === nameOrId.toLowerCase())
  return matches.length === 1 ? matches[0]!.agentId : nameOrId
}

/** @throws WbError agent_template_not_found  when no template matches; suggests a similar name */
export async function findTemplate({ client }: ResolveContext, nameOrId: string): Promise<AgentTemplate> {
  const { items } = await client.call(agentTemplates.list, {})
  const named = items.map(row => ({ row, id: row.templateId, name: row.name }))
  return pickResource(named, nameOrId, templateKind, undefined)
}
