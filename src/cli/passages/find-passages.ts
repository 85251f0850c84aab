import type { Client } from '../../client/client.ts'
import { type Document, documents } from '../../contract/documents.ts'
import { WbError } from '../../contract/errors.ts'
import { type KnowledgeBaseHit, kb, type SearchHit, type SearchRequest } from '../../contract/knowledge.ts'
import { limits } from '../../contract/limits.ts'
import { sectionPayloadKey } from '../../contract/payload-keys.ts'
import type { SearchExplanation } from '../../contract/search-explanation.ts'
import { type PassagePlace, placeOf } from './place.ts'

/** Number of consecutive results that {@link hitsPerDocumentMax} applies to. */
const rankGroupSize = 10
/** Maximum number of hits per document in a group. */
const hitsPerDocumentMax = 3
/** Number of hits to request first, as a multiple of the number of passages to show. */
const firstRequestFactor = 3
/** Factor by which the number of hits increases with each following request. */
const nextRequestFactor = 4

/** A passage to show. */
export interface Passage {
  /** Number by which it is cited, from 1. */
  readonly number: number
  readonly score: number
  /** Share of the question's words that the passage contains, 0 to 1; undefined if the runtime did not send it. */
  readonly coverage: number | undefined
  /** Undefined if it was not requested, or if the runtime did not send it. */
  readonly explanation?: SearchExplanation | undefined
  readonly id: string
  readonly knowledgeBaseId: string
  readonly text: string
  readonly documentId: string | null
  readonly chunkIndex: number | null
  /** Range of the chunks that the text consists of; undefined for a single chunk. */
  readonly chunks?: SearchHit['chunks']
  /** Headings above the passage, such as `Security > Revoke a key`; undefined if unknown. */
  readonly section?: string | undefined
  /** Other knowledge bases that contain the same document. */
  readonly alsoIn?: readonly string[] | undefined
  /** Place in the file at which the passage starts; undefined if it has none. */
  readonly place?: PassagePlace | undefined
  /** Document of the passage; undefined if it was deleted, or the passage has no document. */
  readonly document: Document | undefined
}

export interface SearchContext {
  readonly client: Client
  /** A knowledge base; without its ID, all knowledge bases of the workspace. */
  readonly base: { readonly workspaceId: string; readonly knowledgeBaseId?: string }
  readonly signal: AbortSignal
  /** The search request, without the options that {@link search} adds. */
  readonly body: Omit<
    SearchRequest,
    'vector' | 'topK' | 'includeEmbeddings' | 'includeCoverage' | 'explain'
  > & {
    readonly knowledgeBaseIds?: string[]
  }
}

/**
 * Returns the best passages, of which at most three in ten are from the same document, unless the request groups them.
 *
 * @param limit  maximum number of passages
 */
export async function findPassages(
  context: SearchContext,
  { limit, explain = false }: { limit: number; explain?: boolean },
): Promise<Passage[]> {
  return withDocuments(context, await findHits(context, { limit, includeCoverage: true, explain }))
}

/** Returns the hits of {@link findPassages}. */
export async function findHits(
  context: SearchContext,
  { limit, ...options }: { limit: number; includeCoverage: boolean; explain?: boolean },
): Promise<(SearchHit | KnowledgeBaseHit)[]> {
  if (context.body.groupBy) return search(context, { ...options, topK: limit })
  let topK = Math.min(limits.topKMax, limit * firstRequestFactor)
  for (;;) {
    const hits = await search(context, { ...options, topK })
    const selected = limitPerDocument(hits, limit)
    if (selected.length === limit || hits.length < topK || topK === limits.topKMax) return selected
    topK = Math.min(limits.topKMax, topK * nextRequestFactor)
  }
}

/** Searches with the API, and returns its hits. Hits in a single knowledge base do not contain its ID. */
export function search(
  { client, base: { workspaceId, knowledgeBaseId }, body: query, signal }: SearchContext,
  options: { readonly topK: number; readonly includeCoverage: boolean; readonly explain?: boolean },
): Promise<(SearchHit | KnowledgeBaseHit)[]> {
  const body = { ...query, ...options }
  return knowledgeBaseId === undefined
    ? client.call(kb.searchMany, { params: { workspaceId }, body }, { signal })
    : client.call(kb.search, { params: { workspaceId, knowledgeBaseId }, body }, { signal })
}

/**
 * Returns the first hits in order. In each group of ten, hits that exceed the maximum per document move to the next
 * group.
 */
export function limitPerDocument<H extends SearchHit>(hits: readonly H[], limit: number): H[] {
  const selected: H[] = []
  let remaining = [...hits]
  while (selected.length < limit && remaining.length > 0) {
    const countByDocument = new Map<string, number>()
    const groupEnd = Math.min(selected.length + rankGroupSize, limit)
    const nextGroups: H[] = []
    for (const hit of remaining) {
      const document = keyOf(payloadText(hit, 'documentId') ?? hit.id, baseOf(hit))
      const count = countByDocument.get(document) ?? 0
      if (selected.length === groupEnd || count === hitsPerDocumentMax) nextGroups.push(hit)
      else {
        countByDocument.set(document, count + 1)
        selected.push(hit)
      }
    }
    if (selected.length < groupEnd) return selected
    remaining = nextGroups
  }
  return selected
}

/**
 * Converts hits to passages with their documents.
 *
 * @param fetch  returns a document, or undefined if it was deleted
 */
export async function withDocuments(
  context: SearchContext,
  hits: readonly (SearchHit | KnowledgeBaseHit)[],
  fetch = fetchDocument,
): Promise<Passage[]> {
  const references = new Map(
    hits.flatMap(hit => {
      const documentId = payloadText(hit, 'documentId')
      const base = baseOf(hit, context)
      return documentId ? [[keyOf(documentId, base), { documentId, base }] as const] : []
    }),
  )
  const documentsByKey = new Map(
    await Promise.all(
      [...references].map(
        async ([key, { documentId, base }]) => [key, await fetch(context, base, documentId)] as const,
      ),
    ),
  )
  return hits.map((hit, index) => {
    const documentId = payloadText(hit, 'documentId') ?? null
    const knowledgeBaseId = baseOf(hit, context)
    const { chunkIndex } = hit.payload ?? {}
    return {
      number: index + 1,
      score: hit.score,
      coverage: isCoverage(hit.coverage) ? hit.coverage : undefined,
      explanation: hit.explanation,
      id: hit.id,
      knowledgeBaseId,
      text: payloadText(hit, 'chunkText') ?? '',
      documentId,
      chunkIndex: typeof chunkIndex === 'number' ? chunkIndex : null,
      ...(hit.chunks && hit.chunks.first < hit.chunks.last && { chunks: hit.chunks }),
      section: payloadText(hit, sectionPayloadKey),
      alsoIn: 'alsoIn' in hit ? hit.alsoIn?.map(other => other.knowledgeBaseId) : undefined,
      place: placeOf(hit.payload ?? {}),
      document: documentId === null ? undefined : documentsByKey.get(keyOf(documentId, knowledgeBaseId)),
    }
  })
}

/** Returns the knowledge base of a hit: its own, or if it names none, the only one that was searched. */
function baseOf(hit: SearchHit | KnowledgeBaseHit, context?: SearchContext): string {
  return 'knowledgeBaseId' in hit ? hit.knowledgeBaseId : (context?.base.knowledgeBaseId ?? '')
}

/** Returns a key of a document, whose ID is unique only in its knowledge base. */
function keyOf(documentId: string, knowledgeBaseId: string): string {
  return `${knowledgeBaseId} ${documentId}`
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

/** Returns true for a number from 0 to 1. Needed because the client does not validate responses. */
function isCoverage(value: unknown): value is number {
  return typeof value === 'number' && value >= 0 && value <= 1
}

function payloadText(hit: SearchHit, key: string): string | undefined {
  const value = hit.payload?.[key]
  return typeof value === 'string' ? value : undefined
}
