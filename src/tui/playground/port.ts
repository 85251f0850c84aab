import type { Clock } from '../../base/clock.ts'
import { knowledgeBaseKind, pick } from '../../cli/find/resolve.ts'
import { documentOf, type Passage, search, withDocuments } from '../../cli/passages/hits.ts'
import { plainLine } from '../../cli/terminal/terminal-text.ts'
import { type Client, everything } from '../../client/client.ts'
import type { Document } from '../../contract/documents.ts'
import { type KnowledgeBase, kb, type Search } from '../../contract/knowledge.ts'

/** A knowledge base to search in; its words are fit for a terminal. */
export interface Base {
  readonly id: string
  readonly name: string
  readonly description: string
  /** It can be searched by words. */
  readonly isLexical: boolean
  /** A reranking service is bound to it. */
  readonly hasReranker: boolean
}

/** A request as it goes over the wire, and where it goes. */
export interface Asked {
  readonly base: Base
  readonly body: Omit<Search, 'includeEmbeddings' | 'includeCoverage'>
}

/** What a search gave. */
export interface Found {
  readonly passages: readonly Passage[]
  /** Until the hits were here; names of documents are fetched after that. */
  readonly tookMs: number
}

/** What a playground asks a runtime. */
export interface PlaygroundPort {
  /** @throws WbError, Unreachable */
  knowledgeBases(): Promise<readonly Base[]>
  /** @throws WbError, Unreachable; whatever it throws when it was called off */
  search(asked: Asked, signal: AbortSignal): Promise<Found>
}

/** Documents whose names are remembered. */
const documentsMax = 2_000

/** The knowledge bases of one workspace, by the typed client. */
export class RuntimePort implements PlaygroundPort {
  readonly #documents = new Map<string, Promise<Document | undefined>>()

  constructor(
    private readonly client: Client,
    private readonly workspaceId: string,
    private readonly clock: Pick<Clock, 'now'>,
  ) {}

  async knowledgeBases(): Promise<readonly Base[]> {
    const params = { workspaceId: this.workspaceId }
    const all = await everything(this.client.items(kb.list, { params }))
    return all.map(baseOf)
  }

  async search({ base, body: { topK, ...body } }: Asked, signal: AbortSignal): Promise<Found> {
    const { client, workspaceId, clock } = this
    const asked = { client, base: { workspaceId, knowledgeBaseId: base.id }, body, signal }
    const sinceMs = clock.now()
    const hits = await search(asked, { topK, includeCoverage: true })
    const tookMs = clock.now() - sinceMs
    const passages = await withDocuments(asked, hits, (_, ...ids) => this.#document(...ids))
    return { passages, tookMs }
  }

  /** Not called off with the search, as the next one most likely finds the same document. */
  #document(knowledgeBaseId: string, documentId: string): Promise<Document | undefined> {
    const known = this.#documents.get(documentId)
    if (known) return known
    if (this.#documents.size >= documentsMax) this.#documents.clear()
    const { client, workspaceId } = this
    const read = documentOf({ client, base: { workspaceId } }, knowledgeBaseId, documentId)
    this.#documents.set(documentId, read)
    read.catch(() => this.#documents.delete(documentId))
    return read
  }
}

/**
 * The one that is named, else the only one; undefined where the person has to choose from several.
 *
 * @throws WbError knowledge_base_not_found  with what was probably meant
 */
export async function baseAmong(
  bases: readonly Base[],
  named: string | undefined,
): Promise<Base | undefined> {
  if (named === undefined && bases.length > 1) return undefined
  const rows = bases.map(row => ({ row, id: row.id, name: row.name }))
  return pick(rows, named, knowledgeBaseKind, undefined)
}

function baseOf(base: KnowledgeBase): Base {
  return {
    id: base.knowledgeBaseId,
    name: plainLine(base.name),
    description: plainLine(base.description ?? ''),
    isLexical: base.lexical.enabled,
    hasReranker: base.rerankingServiceId !== null,
  }
}
