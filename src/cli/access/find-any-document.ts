import { accessTools } from '../../contract/access-tools.ts'
import { WbError } from '../../contract/errors.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import { findDocument } from '../find/document.ts'
import {
  listKnowledgeBases,
  type ResolveContext,
  resolveKnowledgeBase,
  resolveWorkspace,
} from '../find/resolve.ts'
import { isId } from '../id.ts'

/** A document, and its knowledge base. */
export interface DocumentAddress {
  readonly base: KnowledgeBase
  readonly documentId: string
}

/**
 * Finds a document by name or ID, like `findDocument`. A document that the caller cannot see can be found by ID.
 *
 * @param base  name or ID of the knowledge base to search; by default, all knowledge bases of the workspace
 * @throws WbError document_not_found  no document matches in these knowledge bases
 * @throws UsageError                  several documents match
 */
export async function findAnyDocument(
  context: ResolveContext,
  nameOrId: string,
  base?: string,
): Promise<DocumentAddress> {
  const bases =
    base === undefined
      ? await listKnowledgeBases(context.client, (await resolveWorkspace(context)).workspaceId)
      : [await resolveKnowledgeBase(context, base)]
  try {
    const { documentId, knowledgeBaseId } = await findDocument(context, nameOrId, base)
    return { documentId, base: bases.find(one => one.knowledgeBaseId === knowledgeBaseId)! }
  } catch (error) {
    if (!isHidden(error) || !isId(nameOrId)) throw error
    for (const one of bases)
      if (await hasDocument(context, one, nameOrId)) return { documentId: nameOrId, base: one }
    throw error
  }
}

async function hasDocument(
  { client }: ResolveContext,
  { workspaceId, knowledgeBaseId }: KnowledgeBase,
  documentId: string,
): Promise<boolean> {
  try {
    const body = { knowledgeBaseId, documentId }
    await client.call(accessTools.viewers, { params: { workspaceId }, query: { limit: 1 }, body })
    return true
  } catch (error) {
    if (isHidden(error)) return false
    throw error
  }
}

/** Returns true if the caller cannot see a document, or the document does not exist. */
function isHidden(error: unknown): boolean {
  if (!(error instanceof WbError)) return false
  return error.code === 'document_not_found' || error.code === 'policy_principal_required'
}
