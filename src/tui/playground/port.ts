import type { Clock } from '../../base/clock.ts'
import { readDocumentChunks } from '../../cli/documents/chunks.ts'
import { knowledgeBaseKind, pickResource } from '../../cli/find/resolve.ts'
import { fetchDocument, type Passage, search, withDocuments } from '../../cli/passages/find-passages.ts'
import { plainLine } from '../../cli/terminal/terminal-text.ts'
import { type Client, collect } from '../../client/client.ts'
import type { Document } from '../../contract/documents.ts'
import { WbError } from '../../contract/errors.ts'
import { type KnowledgeBase, kb, type SearchRequest } from '../../contract/knowledge.ts'

/** A knowledge base to search. Its name and description contain no control characters. */
export interface PlaygroundBase {
  readonly id: string
  readonly name: string
  readonly description: string
  /** True if it supports lexical search. */
  readonly isLexical: boolean
  /** True if it uses a reranking service. */
  readonly hasReranker: boolean
}

/** A knowledge base, and the body of a search request. */
export interface PlaygroundSearch {
  readonly base: PlaygroundBase
  readonly body: Omit<SearchRequest, 'includeEmbeddings' | 'includeCoverage' | 'explain'>
}

/** Results of a search. */
export interface SearchResults {
  readonly passages: readonly Passage[]
  /** Duration of the search, without the requests for document names. */
  readonly tookMs: number
}

/** Requests that a playground sends to the runtime. */
export interface PlaygroundPort {
  /** @throws WbError, Unreachable */
  knowledgeBases(): Promise<readonly PlaygroundBase[]>
  /** @throws WbError, Unreachable  the request failed, or the signal fired */
  search(request: PlaygroundSearch, signal: AbortSignal): Promise<SearchResults>
  /** Returns the text of the best chunk of a passage. @throws WbError, Unreachable */
  chunkText(passage: Passage): Promise<string>
}

/** Maximum number of cached documents. */
const DOCUMENTS_MAX = 2_000

/** Searches the knowledge bases of one workspace with the typed client. */
export class RuntimePort implements PlaygroundPort {
  readonly #documents = new Map<string, Promise<Document | undefined>>()

  constructor(
    private readonly client: Client,
    private readonly workspaceId: string,
    private readonly clock: Pick<Clock, 'now'>,
  ) {}

  async knowledgeBases(): Promise<readonly PlaygroundBase[]> {
    const params = { workspaceId: this.workspaceId }
    const all = await collect(this.client.items(kb.list, { params }))
    return all.map(toPlaygroundBase)
  }

  async search(
    { base, body: { topK, ...body } }: PlaygroundSearch,
    signal: AbortSignal,
  ): Promise<SearchResults> {
    const { client, workspaceId, clock } = this
    const target = { client, base: { workspaceId, knowledgeBaseId: base.id }, body, signal }
    const startedMs = clock.now()
    const hits = await search(target, { topK, includeCoverage: true, explain: true })
    const tookMs = clock.now() - startedMs
    const passages = await withDocuments(target, hits, (_, ...ids) => this.#document(...ids))
    return { passages, tookMs }
  }

  async chunkText({ id, document }: Passage): Promise<string> {
    if (document)
      for await (const chunk of readDocumentChunks(this.client, document))
        if (chunk.id === id && chunk.text !== null) return chunk.text
    throw new WbError('not_found', 'the passage was deleted')
  }

  /**
   * Returns a document, from the cache if possible. The request is not canceled with its search, because the next
   * search probably needs the same document.
   */
  #document(knowledgeBaseId: string, documentId: string): Promise<Document | undefined> {
    const key = `${knowledgeBaseId} ${documentId}`
    const cached = this.#documents.get(key)
    if (cached) return cached
    if (this.#documents.size >= DOCUMENTS_MAX) this.#documents.clear()
    const { client, workspaceId } = this
    const request = fetchDocument({ client, base: { workspaceId } }, knowledgeBaseId, documentId)
    this.#documents.set(key, request)
    request.catch(() => this.#documents.delete(key))
    return request
  }
}

/**
 * Returns the knowledge base with a name or ID. Without one, returns the only knowledge base, or undefined if there are
 * several.
 *
 * @throws WbError knowledge_base_not_found  no knowledge base matches; suggests similar names
 */
export async function pickBase(
  bases: readonly PlaygroundBase[],
  nameOrId: string | undefined,
): Promise<PlaygroundBase | undefined> {
  if (nameOrId === undefined && bases.length > 1) return undefined
  const rows = bases.map(row => ({ row, id: row.id, name: row.name }))
  return pickResource(rows, nameOrId, knowledgeBaseKind, undefined)
}

function toPlaygroundBase(base: KnowledgeBase): PlaygroundBase {
  return {
    id: base.knowledgeBaseId,
    name: plainLine(base.name),
    description: plainLine(base.description ?? ''),
    isLexical: base.lexical.enabled,
    hasReranker: base.rerankingServiceId !== null,
  }
}
