import type { Agent } from '../../contract/agents.ts'
import { WbError } from '../../contract/errors.ts'
import { findAgent, listAgents } from '../find/agent.ts'
import { type ResolveContext, resolveWorkspace } from '../find/resolve.ts'

/** Name of the agent that is used if there are several and none is named. */
const defaultAgentName = 'maven'

/**
 * Returns the named agent, or else the only one, Maven, or the first.
 *
 * @returns `isAssumed` is true if there are several agents and none was named
 * @throws WbError agent_not_found, UsageError
 */
export async function resolveAgent(
  context: ResolveContext,
  wanted: string | undefined,
): Promise<{ agent: Agent; isAssumed: boolean }> {
  if (wanted !== undefined) return { agent: await findAgent(context, wanted), isAssumed: false }
  const { workspaceId } = await resolveWorkspace(context)
  const all = await listAgents(context, workspaceId)
  const agent = all.find(({ name }) => name.toLowerCase() === defaultAgentName) ?? all[0]
  if (!agent)
    throw new WbError('agent_not_found', 'there is no agent yet', {
      next: ['wb agents create --template maven'],
    })
  return { agent, isAssumed: all.length > 1 }
}
