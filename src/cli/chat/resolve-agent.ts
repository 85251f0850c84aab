import type { Agent } from '../../contract/agents.ts'
import { WbError } from '../../contract/errors.ts'
import { findAgent, listAgents } from '../find/agent.ts'
import { type ResolveContext, resolveWorkspace } from '../find/resolve.ts'

/** Name of the agent that is used if there are several and none is named. */
const usual = 'maven'

/**
 * Returns the named agent, or else the only one, Maven, or the first.
 *
 * @returns `isAssumed` is true if there are several agents and none was named
 * @throws WbError agent_not_found, UsageError
 */
export async function resolveAgent(
  resolving: ResolveContext,
  wanted: string | undefined,
): Promise<{ agent: Agent; isAssumed: boolean }> {
  if (wanted !== undefined) return { agent: await findAgent(resolving, wanted), isAssumed: false }
  const { workspaceId } = await resolveWorkspace(resolving)
  const all = await listAgents(resolving, workspaceId)
  const agent = all.find(({ name }) => name.toLowerCase() === usual) ?? all[0]
  if (!agent)
    throw new WbError('agent_not_found', 'there is no agent yet', {
      next: ['wb agents create --template maven'],
    })
  return { agent, isAssumed: all.length > 1 }
}
