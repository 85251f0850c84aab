import type { KnowledgeBase } from '../../contract/knowledge.ts'
import { limits } from '../../contract/limits.ts'
import type { KnowledgeBases } from '../../knowledge/knowledge-bases.ts'
import type { ToolContext } from './tool.ts'
import { ToolError } from './tool-result.ts'

/** Maximum number of knowledge bases that a tool reads. If there are more, the result of the tool says so. */
const basesMax = 200

/** Knowledge bases that a call can read. `isCut` is true if some were left out. */
export interface ReadableBases {
  readonly bases: readonly KnowledgeBase[]
  readonly isCut: boolean
}

type Bases = Pick<KnowledgeBases, 'list' | 'listExisting'>

/**
 * Returns the knowledge bases that a call can read, in order of creation: those in `knowledgeBaseIds`, or all of the
 * workspace if that list is empty. With `requestedId`, returns only that one.
 *
 * @throws ToolError  the requested one is missing or not available to this agent; the message does not reveal which
 */
export async function findReadableBases(
  bases: Bases,
  { workspaceId, knowledgeBaseIds }: Pick<ToolContext, 'workspaceId' | 'knowledgeBaseIds'>,
  requestedId?: string,
): Promise<ReadableBases> {
  if (requestedId !== undefined) {
    const isAvailable = knowledgeBaseIds.length === 0 || knowledgeBaseIds.includes(requestedId)
    const found = isAvailable ? await bases.listExisting(workspaceId, [requestedId]) : []
    if (found.length === 0)
      throw new ToolError(`knowledge base ${requestedId} is not available to this agent`)
    return { bases: found, isCut: false }
  }
  const readable =
    knowledgeBaseIds.length > 0
      ? await bases.listExisting(workspaceId, knowledgeBaseIds)
      : await listBases(bases, workspaceId)
  return { bases: readable.slice(0, basesMax), isCut: readable.length > basesMax }
}

/** Returns the knowledge bases up to the limit, and at least one more if there are more. */
async function listBases(bases: Bases, workspaceId: string): Promise<KnowledgeBase[]> {
  const listed: KnowledgeBase[] = []
  let cursor: string | undefined
  do {
    const page = await bases.list(workspaceId, { limit: limits.pageMax, cursor })
    listed.push(...page.items)
    cursor = page.nextCursor ?? undefined
  } while (cursor !== undefined && listed.length <= basesMax)
  return listed
}
