import type { KnowledgeBase } from '../../contract/knowledge.ts'
import { limits } from '../../contract/limits.ts'
import type { KnowledgeBases } from '../../knowledge/knowledge-bases.ts'
import type { ToolContext } from './tool.ts'
import { ToolError } from './tool-result.ts'

/** Maximum number of knowledge bases that a tool reads. Further ones are left out and reported. */
const basesMax = 200

/** Knowledge bases that a call can read. `isCut` is true if some were left out. */
export interface ReadableBases {
  readonly bases: readonly KnowledgeBase[]
  readonly isCut: boolean
}

type Bases = Pick<KnowledgeBases, 'list' | 'listExisting'>

/**
 * Returns the knowledge bases that a call can read, in order of creation: all that it is bound to, or the one
 * that the model names.
 *
 * @throws ToolError  the named one is missing or not available to this agent; the message does not
 * distinguish these
 */
export async function findReadableBases(
  bases: Bases,
  { workspaceId, knowledgeBaseIds: bound }: Pick<ToolContext, 'workspaceId' | 'knowledgeBaseIds'>,
  named?: string,
): Promise<ReadableBases> {
  if (named !== undefined) {
    const isMeant = bound.length === 0 || bound.includes(named)
    const found = isMeant ? await bases.listExisting(workspaceId, [named]) : []
    if (found.length === 0) throw new ToolError(`knowledge base ${named} is not available to this agent`)
    return { bases: found, isCut: false }
  }
  const kept =
    bound.length > 0 ? await bases.listExisting(workspaceId, bound) : await listBases(bases, workspaceId)
  return { bases: kept.slice(0, basesMax), isCut: kept.length > basesMax }
}

/** Returns the knowledge bases up to the limit, and at least one more if there are more. */
async function listBases(bases: Bases, workspaceId: string): Promise<KnowledgeBase[]> {
  const kept: KnowledgeBase[] = []
  let cursor: string | undefined
  do {
    const page = await bases.list(workspaceId, { limit: limits.pageMax, cursor })
    kept.push(...page.items)
    cursor = page.nextCursor ?? undefined
  } while (cursor !== undefined && kept.length <= basesMax)
  return kept
}
