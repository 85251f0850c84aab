import type { Client } from '../../client/client.ts'
import { kb } from '../../contract/knowledge.ts'
import { limits } from '../../contract/limits.ts'
import type { Workspace } from '../../contract/workspaces.ts'
import { everything } from '../resolve.ts'

/** All knowledge bases of a workspace, as the place of a search. */
export interface Everywhere {
  readonly workspaceId: string
  readonly knowledgeBaseId?: undefined
  /** By id. */
  readonly names: ReadonlyMap<string, string>
}

export async function everywhere(client: Client, { workspaceId }: Workspace): Promise<Everywhere> {
  const query = { limit: limits.pageMax }
  const bases = await everything(client.items(kb.list, { params: { workspaceId }, query }))
  return { workspaceId, names: new Map(bases.map(base => [base.knowledgeBaseId, base.name])) }
}
