import type { KnowledgeBase } from '../../contract/knowledge.ts'
import { limits } from '../../contract/limits.ts'
import type { KnowledgeBases } from '../../knowledge/bases.ts'
import { ToolError } from './result.ts'
import type { ToolContext } from './tool.ts'

/** Knowledge bases that a tool looks at, of those that it may; what it says of more is that they are left out. */
const basesMax = 200

/** Knowledge bases that a call may read; `isCut` where there are more than are looked at. */
export interface Scope {
  readonly bases: readonly KnowledgeBase[]
  readonly isCut: boolean
}

type Bases = Pick<KnowledgeBases, 'list' | 'some'>

/**
 * The knowledge bases that a call may read, in the order in which they were made: those that it is bound to, or the
 * one of them that the model names.
 *
 * @throws ToolError  the one that is named is not there, or not for this agent, which is not told apart
 */
export async function scopeOf(
  bases: Bases,
  { workspaceId, knowledgeBaseIds: bound }: Pick<ToolContext, 'workspaceId' | 'knowledgeBaseIds'>,
  named?: string,
): Promise<Scope> {
  if (named !== undefined) {
    const isMeant = bound.length === 0 || bound.includes(named)
    const found = isMeant ? await bases.some(workspaceId, [named]) : []
    if (found.length === 0) throw new ToolError(`knowledge base ${named} is not available to this agent`)
    return { bases: found, isCut: false }
  }
  const kept = bound.length > 0 ? await bases.some(workspaceId, bound) : await allOf(bases, workspaceId)
  return { bases: kept.slice(0, basesMax), isCut: kept.length > basesMax }
}

/** As many as are looked at, and one more where there are more. */
async function allOf(bases: Bases, workspaceId: string): Promise<KnowledgeBase[]> {
  const kept: KnowledgeBase[] = []
  let cursor: string | undefined
  do {
    const page = await bases.list(workspaceId, { limit: limits.pageMax, cursor })
    kept.push(...page.items)
    cursor = page.nextCursor ?? undefined
  } while (cursor !== undefined && kept.length <= basesMax)
  return kept
}
