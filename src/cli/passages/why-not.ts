import type { Document } from '../../contract/documents.ts'
import { WbError } from '../../contract/errors.ts'
import { type KnowledgeBase, kb } from '../../contract/knowledge.ts'
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
import { fetchDocument, findHits, type SearchContext } from './find-passages.ts'

type Query = SearchContext['body'] & { readonly topK: number }

/** The answer, with the documents that it refers to. */
interface NamedWhyNot {
  readonly answer: WhyNot
  /** Undefined if the caller cannot see it. */
  readonly document: Document | undefined
  /** Names of the documents of results by ID. */
  readonly others: ReadonlyMap<string, string>
}

interface WhyNotOptions {
  readonly signal: AbortSignal
  /** True for the ranks of `wb kb search`, false for those of the API. */
  readonly limitsPerDocument: boolean
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
  { signal, limitsPerDocument }: WhyNotOptions,
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
    const query = await queryFor(candidate)
    const body = { ...query, documentId: found?.documentId ?? nameOrId }
    try {
      const ranked = await client.call(kb.whyNot, { params: { workspaceId, knowledgeBaseId }, body })
      const search = { client, base: { workspaceId, knowledgeBaseId }, body: query, signal }
      const answer = limitsPerDocument ? await rankAsShown(search, ranked) : ranked
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

/** Number of results, best first, that are listed besides the last one. */
const resultsListed = 3

/** Returns an answer with the ranks of `wb kb search`, which shows at most three of ten results from the same document. */
async function rankAsShown(search: SearchContext, answer: WhyNot): Promise<WhyNot> {
  const { documentId, topK, rank: rankOfAll } = answer
  if (rankOfAll === null) return answer
  const rankWith = async (limit: number) => {
    const hits = await findHits(search, { limit, includeCoverage: false })
    return { hits, rank: 1 + hits.findIndex(({ payload }) => payload?.documentId === documentId) }
  }
  const { hits, rank } = await rankWith(topK)
  if (rank > 0) return { ...answer, stage: 'found', rank, beatenBy: [], remedies: [] }
  const deeper = (await rankWith(rankOfAll)).rank || rankOfAll
  const results = hits.map(({ id, score, payload }, at) => {
    const other = payload?.documentId
    return { rank: at + 1, id, documentId: typeof other === 'string' ? other : null, score }
  })
  return {
    ...answer,
    rank: deeper,
    cutoffScore: hits[topK - 1]?.score ?? null,
    beatenBy: results.filter((_, at) => at < resultsListed || at === results.length - 1),
    remedies: answer.remedies.map(remedy =>
      remedy.action === 'raiseTopK' ? { ...remedy, topK: Math.min(deeper, remedy.topK ?? deeper) } : remedy,
    ),
  }
}
