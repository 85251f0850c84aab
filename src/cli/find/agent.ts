import { everything } from '../../client/client.ts'
import { type Agent, type AgentTemplate, agents, agentTemplates } from '../../contract/agents.ts'
import { isId } from '../id.ts'
import { type Kind, pick, type Resolving, resolveWorkspace } from './resolve.ts'

const agentKind: Kind = {
  one: 'agent',
  code: 'agent_not_found',
  list: 'wb agents list',
  create: ['wb agents create --template bobby'],
}
const templateKind: Kind = {
  one: 'agent template',
  code: 'agent_template_not_found',
  list: 'wb agents templates',
  create: [],
}

/** Returns the agents of a workspace. */
export async function namedAgents({ client }: Resolving, workspaceId: string): Promise<Agent[]> {
  return everything(client.items(agents.list, { params: { workspaceId } }))
}

/**
 * Finds an agent by ID or name. Without one, returns the only agent of the workspace.
 *
 * @throws WbError agent_not_found  when no agent matches; suggests a similar name
 * @throws UsageError               when several agents match
 */
export async function findAgent(resolving: Resolving, wanted?: string): Promise<Agent> {
  const { workspaceId } = await resolveWorkspace(resolving)
  if (wanted && isId(wanted))
    return resolving.client.call(agents.show, { params: { workspaceId, agentId: wanted } })
  const all = await namedAgents(resolving, workspaceId)
  const named = all.map(row => ({ row, id: row.agentId, name: row.name }))
  return pick(named, asNamed(all, wanted), { ...agentKind, naming: resolving.withBase }, resolving.choose)
}

/** Matches a name regardless of case (`maven` for Maven) if only one agent has it. */
function asNamed(all: readonly Agent[], wanted: string | undefined): string | undefined {
  if (wanted === undefined || all.some(({ name }) => name === wanted)) return wanted
  const alike = all.filter(({ name }) => name.toLowerCase() === wanted.toLowerCase())
  return alike.length === 1 ? alike[0]!.agentId : wanted
}

/** @throws WbError agent_template_not_found  when no template matches; suggests a similar name */
export async function findTemplate({ client }: Resolving, wanted: string): Promise<AgentTemplate> {
  const { items } = await client.call(agentTemplates.list, {})
  const named = items.map(row => ({ row, id: row.templateId, name: row.name }))
  return pick(named, wanted, templateKind, undefined)
}
