import type { Client } from '../../client/client.ts'
import { type Document, documents } from '../../contract/documents.ts'
import { WbError } from '../../contract/errors.ts'
import { type KnowledgeBaseHit, kb, type SearchHit, type SearchRequest } from '../../contract/knowledge.ts'
import { limits } from '../../contract/limits.ts'

/** One document fills at most {@link placesPerDocumentMax} of this many consecutive results. */
const rankGroupSize = 10
const placesPerDocumentMax = 3
/** Factors by which more hits are requested than shown, at first and after each attempt with too few. */
const firstExcessFactor = 3
const nextExcessFactor = 4

/** A passage to show. */
export interface Passage {
  /** Number to cite it by, from 1. */
  readonly number: number
  readonly score: number
  /** Share of the question's words that the passage holds, 0 to 1; undefined if the runtime did not send it. */
  readonly coverage: number | undefined
  readonly id: string
  readonly knowledgeBaseId: string
  readonly text: string
  readonly documentId: string | null
  readonly chunkIndex: number | null
  /** Document of the passage; undefined if it was deleted, or the passage has no document. */
  readonly document: Document | undefined
}

export interface SearchContext {
  readonly client: Client
  /** A knowledge base, or a whole workspace if the ID is omitted. */
  readonly base: { readonly workspaceId: string; readonly knowledgeBaseId?: string }
  readonly signal: AbortSignal
  /** The request, without the options that only change the display. */
  readonly body: Omit<SearchRequest, 'topK' | 'includeEmbeddings' | 'includeCoverage'> & {
    readonly knowledgeBaseIds?: string[]
  }
}

/**
 * Returns the best passages, with at most three of ten from one document.
 *
 * @param limit  maximum number of passages
 */
export async function findPassages(context: SearchContext, limit: number): Promise<Passage[]> {
  let topK = Math.min(limits.topKMax, limit * firstExcessFactor)
  for (;;) {
    const hits = await search(context, { topK, includeCoverage: true })
    const chosen = limitPerDocument(hits, limit)
    if (chosen.length === limit || hits.length < topK || topK === limits.topKMax)
      return withDocuments(context, chosen)
    topK = Math.min(limits.topKMax, topK * nextExcessFactor)
  }
}

/** Returns the hits of the API. Hits of a single knowledge base do not contain its ID. */
export function search(
  { client, base: { workspaceId, knowledgeBaseId }, body: asked, signal }: SearchContext,
  wanted: { readonly topK: number; readonly includeCoverage: boolean },
): Promise<(SearchHit | KnowledgeBaseHit)[]> {
  const body = { ...asked, ...wanted }
  return knowledgeBaseId === undefined
    ? client.call(kb.searchMany, { params: { workspaceId }, body }, { signal })
    : client.call(kb.search, { params: { workspaceId, knowledgeBaseId }, body }, { signal })
}

/**
 * Returns the first hits in order. Hits that exceed the share of their document move to the next ten places.
 */
export function limitPerDocument<H extends SearchHit>(hits: readonly H[], limit: number): H[] {
  const chosen: H[] = []
  let waiting = [...hits]
  while (chosen.length < limit && waiting.length > 0) {
    const inThisRow = new Map<string, number>()
    const places = Math.min(rankGroupSize, limit - chosen.length)
    const before = chosen.length
    const later: H[] = []
    for (const hit of waiting) {
      const document = payloadText(hit, 'documentId') ?? hit.id
      const filled = inThisRow.get(document) ?? 0
      if (chosen.length - before === places || filled === placesPerDocumentMax) later.push(hit)
      else {
        inThisRow.set(document, filled + 1)
        chosen.push(hit)
      }
    }
    if (chosen.length - before < places) return chosen
    waiting = later
  }
  return chosen
}

/**
 * Adds the documents to hits.
 *
 * @param read  returns a document
 */
export async function withDocuments(
  context: SearchContext,
  hits: readonly (SearchHit | KnowledgeBaseHit)[],
  read = fetchDocument,
): Promise<Passage[]> {
  const baseOf = (hit: SearchHit | KnowledgeBaseHit) =>
    'knowledgeBaseId' in hit ? hit.knowledgeBaseId : (context.base.knowledgeBaseId ?? '')
  const bases = new Map(hits.map(hit => [payloadText(hit, 'documentId'), baseOf(hit)]))
  const found = new Map(
    await Promise.all(
      [...bases].map(async ([id, base]) => [id, id && (await read(context, base, id))] as const),
    ),
  )
  return hits.map((hit, index) => {
    const documentId = payloadText(hit, 'documentId') ?? null
    const { chunkIndex } = hit.payload ?? {}
    return {
      number: index + 1,
      score: hit.score,
      coverage: isCoverage(hit.coverage) ? hit.coverage : undefined,
      id: hit.id,
      knowledgeBaseId: baseOf(hit),
      text: payloadText(hit, 'chunkText') ?? '',
      documentId,
      chunkIndex: typeof chunkIndex === 'number' ? chunkIndex : null,
      document: (documentId !== null && found.get(documentId)) || undefined,
    }
  })
}

/** Returns undefined for a document that was deleted after the search. */
export async function fetchDocument(
  {
    client,
    base: { workspaceId },
    signal,
  }: Pick<SearchContext, 'client' | 'base'> & Partial<Pick<SearchContext, 'signal'>>,
  knowledgeBaseId: string,
  documentId: string,
): Promise<Document | undefined> {
  const params = { workspaceId, knowledgeBaseId, documentId }
  try {
    return await client.call(documents.show, { params }, { signal })
  } catch (error) {
    if (error instanceof WbError && error.code === 'document_not_found') return undefined
    throw error
  }
}

/** Returns the coverage if it is a number from 0 to 1, because a server may send anything. */
function isCoverage(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= 1
}

function payloadText(hit: SearchHit, key: string): string | undefined {
  const value = hit.payload?.[key]
  return typeof value === 'string' ? value : undefined
}
