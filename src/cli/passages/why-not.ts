import type { Document } from '../../contract/documents.ts'
import { WbError } from '../../contract/errors.ts'
import { type KnowledgeBase, kb } from '../../contract/knowledge.ts'
import type { ClientRequest } from '../../contract/route.ts'
import type { WhyNot } from '../../contract/search-explanation.ts'
import { documentName } from '../fields/resources.ts'
import { findDocument } from '../find/document.ts'
import {
  listKnowledgeBases,
  type ResolveContext,
  resolveKnowledgeBase,
  resolveWorkspace,
} from '../find/resolve.ts'
import { isId } from '../id.ts'
import { fetchDocument } from './find-passages.ts'

type Query = Omit<ClientRequest<typeof kb.whyNot>['body'], 'documentId'>

/** The answer, with the documents that it refers to. */
interface NamedWhyNot {
  readonly answer: WhyNot
  /** Undefined if the caller cannot see it. */
  readonly document: Document | undefined
  /** Names of the documents of results by ID. */
  readonly others: ReadonlyMap<string, string>
}

/**
 * Asks why a search does not find a document.
 *
 * @param nameOrId  as of `findDocument`; a hidden document can only be named by ID
 * @param base      name or ID of the knowledge base; by default, all knowledge bases of the workspace
 * @param queryFor  returns the search
 * @throws WbError document_not_found  no document matches
 */
export async function askWhyNot(
  context: ResolveContext,
  nameOrId: string,
  base: string | undefined,
  queryFor: (base: KnowledgeBase) => Promise<Query>,
): Promise<NamedWhyNot> {
  const { client } = context
  const bases =
    base === undefined
      ? await listKnowledgeBases(client, (await resolveWorkspace(context)).workspaceId)
      : [await resolveKnowledgeBase(context, base)]
  const found = isId(nameOrId) ? undefined : await findDocument(context, nameOrId, base)
  let failure: unknown
  for (const candidate of bases) {
    const { workspaceId, knowledgeBaseId } = candidate
    if (found && found.knowledgeBaseId !== knowledgeBaseId) continue
    const body = { ...(await queryFor(candidate)), documentId: found?.documentId ?? nameOrId }
    try {
      const answer = await client.call(kb.whyNot, { params: { workspaceId, knowledgeBaseId }, body })
      const fetch = (id: string) => fetchDocument({ client, base: { workspaceId } }, knowledgeBaseId, id)
      const document = found ?? (answer.stage === 'visibility' ? undefined : await fetch(answer.documentId))
      const ids = new Set(answer.beatenBy.flatMap(({ documentId }) => documentId ?? []))
      const others = await Promise.all(
        [...ids].map(async id => {
          const other = await fetch(id)
          return [id, other ? documentName(other) : id] as const
        }),
      )
      return { answer, document, others: new Map(others) }
    } catch (error) {
      if (!(error instanceof WbError) || error.code !== 'document_not_found') throw error
      failure = error
    }
  }
  throw failure ?? new WbError('document_not_found', `no document "${nameOrId}" in any knowledge base`)
}
