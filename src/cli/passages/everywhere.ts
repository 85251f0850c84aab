import type { Client } from '../../client/client.ts'
import type { Workspace } from '../../contract/workspaces.ts'
import { everyBase } from '../find/resolve.ts'

/** All knowledge bases of a workspace, as the place of a search. */
export interface Everywhere {
  readonly workspaceId: string
  readonly knowledgeBaseId?: undefined
  /** By id. */
  readonly names: ReadonlyMap<string, string>
}

export async function everywhere(client: Client, { workspaceId }: Workspace): Promise<Everywhere> {
  const bases = await everyBase(client, workspaceId)
  return { workspaceId, names: new Map(bases.map(base => [base.knowledgeBaseId, base.name])) }
}
