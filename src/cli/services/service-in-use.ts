import { shellWord } from '../../base/shell-word.ts'
import type { Client } from '../../client/client.ts'
import { agents } from '../../contract/agents.ts'
import { WbError } from '../../contract/errors.ts'
import { kb } from '../../contract/knowledge.ts'

/** Maximum number of resources to list. */
const listedLinesMax = 8

/**
 * If a service could not be deleted because it is in use, adds commands to the error that show its knowledge bases and
 * agents. Returns other errors unchanged.
 */
export async function explainServiceInUse(
  error: unknown,
  client: Client,
  { workspaceId, serviceId }: { workspaceId: string; serviceId: string },
): Promise<unknown> {
  if (!(error instanceof WbError) || !error.code.endsWith('_service_in_use')) return error
  const request = { params: { workspaceId } }
  const bases = (await client.call(kb.list, request)).items.filter(row => refersTo(row, serviceId))
  const usingAgents = (await client.call(agents.list, request)).items.filter(row => refersTo(row, serviceId))
  const lines = [
    ...bases.map(({ name }) => `wb kb show ${shellWord(name)}`),
    ...usingAgents.map(({ name }) => `wb agents show ${shellWord(name)}`),
  ]
  return new WbError(error.code, error.message, {
    ...error.facts,
    next: [error.hint, ...lines.slice(0, listedLinesMax)],
  })
}

function refersTo(row: object, serviceId: string): boolean {
  return Object.values(row).includes(serviceId)
}
