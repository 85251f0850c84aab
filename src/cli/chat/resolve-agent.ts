import type { Agent } from '../../contract/agents.ts'
import { WbError } from '../../contract/errors.ts'
import { findAgent, listAgents } from '../find/agent.ts'
import { type ResolveContext, resolveWorkspace } from '../find/resolve.ts'

/** Name of the agent to use if there are several and none is specified. */
const defaultAgentName = 'maven'

/**
 * Returns the specified agent, else the agent named Maven, else the oldest agent.
 *
 * @returns the agent; `isAssumed` is true if there are several agents and none was specified
 * @throws WbError agent_not_found, UsageError
 */
export async function resolveAgent(
  context: ResolveContext,
  nameOrId: string | undefined,
): Promise<{ agent: Agent; isAssumed: boolean }> {
  if (nameOrId !== undefined) return { agent: await findAgent(context, nameOrId), isAssumed: false }
  const { workspaceId } = await resolveWorkspace(context)
  const all = await listAgents(context, workspaceId)
  const agent = all.find(({ name }) => name.toLowerCase() === defaultAgentName) ?? all[0]
  if (!agent)
    throw new WbError('agent_not_found', 'there is no agent yet', {
      next: ['wb agents create --template maven'],
    })
  return { agent, isAssumed: all.length > 1 }
}
