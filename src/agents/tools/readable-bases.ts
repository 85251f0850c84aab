import { limits } from '../../contract/limits.ts'
import type { KnowledgeBases } from '../../knowledge/knowledge-bases.ts'
import type { KnowledgeBaseRow } from '../../storage/tables.ts'
import type { ToolContext } from './tool.ts'
import { ToolError } from './tool-result.ts'

/** Maximum number of knowledge bases that a tool reads. If there are more, the result of the tool says so. */
const basesMax = 200

/** Knowledge bases that a call can read. `isTruncated` is true if some were omitted. */
export interface ReadableBases {
  readonly bases: readonly KnowledgeBaseRow[]
  readonly isTruncated: boolean
}

type Bases = Pick<KnowledgeBases, 'list' | 'listExisting'>

/**
 * Returns the knowledge bases that a call can read, in order of creation: those in `knowledgeBaseIds`, or all knowledge
 * bases of the workspace if that list is empty. If `requestedId` is set, returns only that knowledge base.
 *
 * @throws ToolError  the requested knowledge base does not exist, or is not available to this agent; the message does
 *   not reveal which
 */
export async function findReadableBases(
  bases: Bases,
  { workspaceId, knowledgeBaseIds }: Pick<ToolContext, 'workspaceId' | 'knowledgeBaseIds'>,
  requestedId?: string,
): Promise<ReadableBases> {
  if (requestedId !== undefined) {
    const isAvailable = knowledgeBaseIds.length === 0 || knowledgeBaseIds.includes(requestedId)
    const existing = isAvailable ? await bases.listExisting(workspaceId, [requestedId]) : []
    if (existing.length === 0)
      throw new ToolError(`knowledge base ${requestedId} is not available to this agent`)
    return { bases: existing, isTruncated: false }
  }
  const readable =
    knowledgeBaseIds.length > 0
      ? await bases.listExisting(workspaceId, knowledgeBaseIds)
      : await listBases(bases, workspaceId)
  return { bases: readable.slice(0, basesMax), isTruncated: readable.length > basesMax }
}

/** Returns all knowledge bases, or more than `basesMax` of them if there are that many. */
async function listBases(bases: Bases, workspaceId: string): Promise<KnowledgeBaseRow[]> {
  const listed: KnowledgeBaseRow[] = []
  let cursor: string | undefined
  do {
    const page = await bases.list(workspaceId, { limit: limits.pageMax, cursor })
    listed.push(...page.items.filter(base => !base.importing))
    cursor = page.nextCursor ?? undefined
  } while (cursor !== undefined && listed.length <= basesMax)
  return listed
}
