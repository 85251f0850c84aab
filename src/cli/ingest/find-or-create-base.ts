import type { Client } from '../../client/client.ts'
import { WbError } from '../../contract/errors.ts'
import { type KnowledgeBase, kb } from '../../contract/knowledge.ts'
import type { Workspace } from '../../contract/workspaces.ts'

/** Options of {@link findOrCreateBase}. */
export interface FindOrCreateBaseOptions {
  readonly client: Client
  /** Name or ID of the knowledge base. */
  readonly name: string
  find(name: string): Promise<KnowledgeBase>
  /** True if the user selected the workspace. It is then not created if it is missing. */
  readonly isWorkspaceNamed: boolean
  workspace(): Promise<Workspace>
  /** Returns true if a missing knowledge base may be created. */
  confirm(question: string): Promise<boolean>
  readonly signal: AbortSignal
}

/**
 * Finds a knowledge base by name or ID, or creates a missing one if `confirm` returns true.
 *
 * @throws WbError knowledge_base_not_found  it is missing, and `confirm` returned false; suggests `--create`
 */
export async function findOrCreateBase(
  options: FindOrCreateBaseOptions,
): Promise<{ base: KnowledgeBase; created: boolean }> {
  const { name } = options
  try {
    return { base: await options.find(name), created: false }
  } catch (error) {
    if (!isMissing(error, options)) throw error
    const { next = [] } = error.facts as { next?: string[] }
    const similar =
      typeof error.facts.didYouMean === 'string' ? ` (or did you mean ${error.facts.didYouMean}?)` : ''
    if (!(await options.confirm(`There is no knowledge base "${name}"${similar}. Create it?`)))
      throw new WbError(error.code, error.message, {
        ...error.facts,
        next: [...next, 'add --create to create it'],
      })
    const { workspaceId } = await options.workspace()
    return createBase(options, workspaceId)
  }
}

/** Finds a knowledge base by name or ID. Returns undefined if it, or the default workspace, does not exist. */
export async function findBaseIfPresent(
  options: Pick<FindOrCreateBaseOptions, 'name' | 'find' | 'isWorkspaceNamed'>,
): Promise<KnowledgeBase | undefined> {
  try {
    return await options.find(options.name)
  } catch (error) {
    if (isMissing(error, options)) return undefined
    throw error
  }
}

/** Creates the knowledge base, or returns the one that another command created in the meantime. */
async function createBase({ client, name, signal, find }: FindOrCreateBaseOptions, workspaceId: string) {
  try {
    const base = await client.call(kb.create, { params: { workspaceId }, body: { name } }, { signal })
    return { base, created: true }
  } catch (error) {
    if (error instanceof WbError && error.code === 'kb_name_taken')
      return { base: await find(name), created: false }
    throw error
  }
}

/** Returns true if the knowledge base does not exist, or its default workspace does not exist yet. */
function isMissing(
  error: unknown,
  { isWorkspaceNamed }: Pick<FindOrCreateBaseOptions, 'isWorkspaceNamed'>,
): error is WbError {
  if (!(error instanceof WbError)) return false
  const hasNoWorkspace =
    error.code === 'workspace_not_found' && error.facts.requestId === undefined && !isWorkspaceNamed
  return error.code === 'knowledge_base_not_found' || hasNoWorkspace
}
