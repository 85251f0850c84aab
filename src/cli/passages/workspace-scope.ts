import type { Client } from '../../client/client.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import type { Workspace } from '../../contract/workspaces.ts'
import { listKnowledgeBases, type ResolveContext, resolveKnowledgeBase } from '../find/resolve.ts'

/** All knowledge bases of a workspace, as the scope of a search. */
export interface WorkspaceScope {
  readonly workspaceId: string
  readonly knowledgeBaseId?: undefined
  /** Names of the knowledge bases by ID. */
  readonly names: ReadonlyMap<string, string>
}

export async function workspaceScope(client: Client, { workspaceId }: Workspace): Promise<WorkspaceScope> {
  return createScope(workspaceId, await listKnowledgeBases(client, workspaceId))
}

/**
 * Returns the named knowledge base, or else the only one. If there are several, prompts the user to choose one
 * or all.
 *
 * @throws WbError, UsageError  see {@link resolveKnowledgeBase}
 */
export function knowledgeBaseOrAll(
  context: ResolveContext,
  reference: string | undefined,
): Promise<KnowledgeBase | WorkspaceScope> {
  return resolveKnowledgeBase(context, reference, createScope)
}

function createScope(workspaceId: string, bases: readonly KnowledgeBase[]): WorkspaceScope {
  return { workspaceId, names: new Map(bases.map(base => [base.knowledgeBaseId, base.name])) }
}
