import type { Agent } from '../../contract/agents.ts'
import { WbError } from '../../contract/errors.ts'
import { findAgent, listAgents } from '../find/agent.ts'
import { type ResolveContext, resolveWorkspace } from '../find/resolve.ts'

/** Speaks where no agent is named and there are several. */
const usual = 'maven'

/**
 * The agent that one speaks with: the one that is named, else the only one, else Maven, else the first.
 *
 * @returns with whether it was chosen among several by nobody
 * @throws WbError agent_not_found, UsageError
 */
export async function speaker(
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
