import type { Agent } from '../../contract/agents.ts'
import { WbError } from '../../contract/errors.ts'
import { limits } from '../../contract/limits.ts'
import type { ModelList } from '../../contract/openai.ts'
import type { RowStore } from '../../storage/rows.ts'
import { tables } from '../../storage/tables.ts'
import { agentNotFound } from '../not-found.ts'

const pageSize = 200
/** Maximum length of one page, as JSON. It limits memory, because the prompts of agents can be long. */
const pageCharsMax = 8_000_000

/**
 * Returns the agents of a workspace as models. The ID of a model is the name of its agent, or the agent's ID if several
 * agents share the name.
 */
export async function listModels(rows: RowStore, workspaceId: string): Promise<ModelList> {
  const agents: Pick<Agent, 'agentId' | 'name' | 'createdAt'>[] = []
  for await (const { agentId, name, createdAt } of readAgents(rows, workspaceId)) {
    agents.push({ agentId, name, createdAt })
    if (agents.length === limits.idsPerList) break
  }
  const counts = new Map<string, number>()
  for (const { name } of agents) counts.set(name, (counts.get(name) ?? 0) + 1)
  return {
    object: 'list',
    data: agents.map(({ agentId, name, createdAt }) => ({
      id: counts.get(name) === 1 ? name : agentId,
      object: 'model',
      created: Math.floor(Date.parse(createdAt) / 1_000),
      owned_by: 'workbase',
      agent_id: agentId,
    })),
  }
}

/**
 * Finds an agent by its ID or its name.
 *
 * @throws agent_not_found
 * @throws validation_error  several agents have this name
 */
export async function findAgentByModel(rows: RowStore, workspaceId: string, model: string): Promise<Agent> {
  const byId = await rows.get(tables.agents, [workspaceId, model])
  if (byId) return byId.row
  const [match, another] = await rows.list(tables.agents, {
    index: 'byName',
    prefix: [workspaceId, model],
    limit: 2,
  })
  if (another)
    throw new WbError(
      'validation_error',
      `model: several agents are named ${JSON.stringify(model)}; use the ID of one of them`,
      { hint: 'GET …/openai/v1/models lists the IDs.' },
    )
  if (!match) throw agentNotFound(model)
  return match.row
}

async function* readAgents(rows: RowStore, workspaceId: string): AsyncGenerator<Agent, void, undefined> {
  let after: string[] | undefined
  for (;;) {
    const page = await rows.list(tables.agents, {
      index: 'byWorkspace',
      prefix: [workspaceId],
      limit: pageSize,
      charsMax: pageCharsMax,
      ...(after && { after }),
    })
    for (const { row } of page) yield row
    const last = page.at(-1)?.row
    if (!last) return
    after = [last.createdAt, last.agentId]
  }
}
