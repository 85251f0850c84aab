import type { z } from 'zod'
import type { Chunk } from '../../contract/documents.ts'
import type { KnowledgeBase, KnowledgeBaseHit } from '../../contract/knowledge.ts'
import { limits } from '../../contract/limits.ts'
import type { KnowledgeBases } from '../../knowledge/bases.ts'
import type { Documents } from '../../knowledge/documents.ts'
import { unlessGone } from '../../knowledge/guards.ts'
import type { ManySearcher } from '../../knowledge/search-many.ts'
import type { DocumentRow } from '../../storage/tables.ts'
import type { Excerpt } from './excerpt.ts'
import { executable } from './executable.ts'
import { builtin } from './own-tools.ts'
import { bytesFor, citationMax, jsonBytes, shareAmong } from './passage-budget.ts'
import { label, pageOf, passagesOf, textOf } from './passages.ts'
import { fitted, ToolError } from './result.ts'
import { type Scope, scopeOf } from './scope.ts'
import type { Passage, Tool, ToolContext } from './tool.ts'

/** Read access to knowledge bases for tools. */
export interface Reads {
  readonly bases: Pick<KnowledgeBases, 'list' | 'some'>
  readonly documents: Pick<Documents, 'list' | 'count' | 'get' | 'chunks'>
  readonly many: Pick<ManySearcher, 'search'>
}

const listedMax = 25
const samplesMax = 5

const noBases = 'There are no knowledge bases.'
const noDocuments = 'There are no documents.'

/** The built-in tools. They read only what the caller can see in the knowledge bases of the call. */
export class KnowledgeTools {
  constructor(private readonly reads: Reads) {}

  /** Returns the tools, in display order. */
  all(): Tool[] {
    const untrusted = { readsUntrusted: true }
    return [
      executable(builtin.listBases, (_, context) => this.#listBases(context)),
      executable(builtin.listDocuments, (args, context) => this.#listDocuments(args, context), untrusted),
      executable(builtin.countDocuments, (args, context) => this.#countDocuments(args, context)),
      executable(builtin.summarizeBases, (args, context) => this.#summarize(args, context), untrusted),
      executable(builtin.search, (args, context) => this.#search(args, context), untrusted),
      executable(builtin.getDocument, (args, context) => this.#getDocument(args, context), untrusted),
      executable(builtin.listChunks, (args, context) => this.#listChunks(args, context), untrusted),
    ]
  }

  async #listBases(context: ToolContext): Promise<string> {
    const scope = await scopeOf(this.reads.bases, context)
    if (scope.bases.length === 0) return noBases
    const entries = scope.bases.slice(0, listedMax).map(base => ({ ...idOf(base), ...described(base) }))
    return fitted(entries, knowledgeBases => ({
      knowledgeBases,
      ...cutAt(knowledgeBases, scope.bases.length, scope),
    }))
  }

  async #listDocuments(args: OneOrAll, context: ToolContext): Promise<string> {
    const { documents } = this.reads
    const scope = await scopeOf(this.reads.bases, context, args.knowledgeBaseId)
    const counts = await this.#counts(scope, context)
    const total = sum(counts)
    if (total === 0) return noDocuments
    const rows: DocumentRow[] = []
    for (const [at, { knowledgeBaseId }] of scope.bases.entries()) {
      if (counts[at] === 0 || rows.length === listedMax) continue
      const query = { limit: listedMax - rows.length }
      const page = await documents.list(context.workspaceId, knowledgeBaseId, query).catch(unlessGone)
      rows.push(...(page?.items ?? []))
    }
    return fitted(rows.map(listedDocument), found => ({ documents: found, ...cutAt(found, total, scope) }))
  }

  async #countDocuments(args: OneOrAll, context: ToolContext): Promise<string> {
    const scope = await scopeOf(this.reads.bases, context, args.knowledgeBaseId)
    if (scope.bases.length === 0) return noBases
    const counts = await this.#counts(scope, context)
    const entries = scope.bases.map((base, at) => ({ ...idOf(base), documentCount: counts[at]! }))
    return fitted(entries, perKnowledgeBase => ({
      total: sum(counts),
      perKnowledgeBase,
      ...(scope.isCut && { truncated: true }),
    }))
  }

  async #summarize(args: OneOrAll, context: ToolContext): Promise<string> {
    const { documents } = this.reads
    const scope = await scopeOf(this.reads.bases, context, args.knowledgeBaseId)
    if (scope.bases.length === 0) return noBases
    const entries = await Promise.all(
      scope.bases.slice(0, listedMax).map(async base => {
        const { workspaceId, knowledgeBaseId } = base
        const query = { limit: samplesMax }
        const sample = await documents.list(workspaceId, knowledgeBaseId, query).catch(unlessGone)
        if (!sample) return undefined
        return {
          ...idOf(base),
          ...described(base),
          documentCount: await documents.count(workspaceId, knowledgeBaseId),
          sampleDocuments: sample.items.map(({ documentId, sourceFilename }) => ({
            documentId,
            sourceFilename: label(sourceFilename),
          })),
        }
      }),
    )
    const there = entries.filter(entry => entry !== undefined)
    return fitted(there, summaries => ({ summaries, ...cutAt(summaries, scope.bases.length, scope) }))
  }

  async #search(args: z.output<typeof builtin.search.input>, context: ToolContext): Promise<string> {
    const { bases } = await scopeOf(this.reads.bases, context, args.knowledgeBaseId)
    if (bases.length === 0) return noBases
    if (bases.length > limits.knowledgeBasesPerSearch)
      throw new ToolError(
        `there are more than ${limits.knowledgeBasesPerSearch} knowledge bases; name the one to search by knowledgeBaseId`,
      )
    const query = {
      text: args.query,
      topK: args.limit,
      includeEmbeddings: false,
      knowledgeBaseIds: bases.map(base => base.knowledgeBaseId),
    }
    const searching = {
      visibility: context.caller.visibility,
      signal: context.signal,
      leavesOutDeleted: true,
    }
    const { hits } = await this.reads.many.search(context.workspaceId, query, searching)
    if (hits.length === 0) return 'No passage was found.'
    const passages = await passagesOf(this.reads.documents, context.workspaceId, hits)
    return searchResult(args.query, hits, passages, context)
  }

  async #getDocument(args: OneDocument, context: ToolContext): Promise<string> {
    const row = await this.#document(args, context)
    const {
      documentId,
      knowledgeBaseId,
      sourceFilename,
      fileType,
      fileSize,
      chunkTotal,
      status,
      ingestedAt,
    } = row
    return fitted(Object.entries(row.metadata), kept => ({
      documentId,
      knowledgeBaseId,
      sourceFilename: label(sourceFilename),
      fileType,
      fileSize,
      chunkTotal,
      status,
      ingestedAt,
      metadata: Object.fromEntries(kept),
    }))
  }

  async #listChunks(args: ChunksArgs, context: ToolContext): Promise<string> {
    const { documentId, knowledgeBaseId, sourceFilename, chunkTotal, metadata } = await this.#document(
      args,
      context,
    )
    const chunks = await this.#chunksFrom(args, context)
    if (chunks.length === 0)
      return args.offset === 0
        ? 'The document has no text.'
        : `The document has no chunk at offset ${args.offset}.`
    const place = { knowledgeBaseId, attachmentId: null, documentId, title: label(textOf(metadata.title)) }
    const cite = ({ id, chunkIndex, payload }: Chunk) =>
      context.cite({
        ...place,
        chunkId: id,
        chunkIndex,
        sourceFilename: label(sourceFilename),
        page: pageOf(payload.page),
      })
    const head = { documentId, knowledgeBaseId, chunkTotal, offset: args.offset }
    return chunksResult(chunks, head, { cite, bytesMax: bytesFor(context.passageTokens) })
  }

  /** @throws document_not_found, ToolError */
  async #document({ knowledgeBaseId, documentId }: OneDocument, context: ToolContext): Promise<DocumentRow> {
    await scopeOf(this.reads.bases, context, knowledgeBaseId)
    return this.reads.documents.get(context.workspaceId, knowledgeBaseId, documentId)
  }

  /** Returns chunks by position. Chunks that the caller cannot see are not counted. */
  async #chunksFrom({ offset, limit, ...ids }: ChunksArgs, context: ToolContext): Promise<Chunk[]> {
    const place = { ...ids, workspaceId: context.workspaceId }
    let toPass = offset
    let cursor: string | undefined
    for (;;) {
      context.signal.throwIfAborted()
      const query = { limit: Math.min(limits.chunkPageMax, toPass + limit), cursor }
      const page = await this.reads.documents.chunks(place, query, context.caller)
      if (page.items.length > toPass || page.nextCursor === null)
        return page.items.slice(toPass, toPass + limit)
      toPass -= page.items.length
      cursor = page.nextCursor
    }
  }

  #counts({ bases }: Scope, { workspaceId }: ToolContext): Promise<number[]> {
    return Promise.all(bases.map(base => this.reads.documents.count(workspaceId, base.knowledgeBaseId)))
  }
}

type OneOrAll = z.output<typeof builtin.listDocuments.input>
type OneDocument = z.output<typeof builtin.getDocument.input>
type ChunksArgs = z.output<typeof builtin.listChunks.input>

/**
 * Returns the hits of a search as JSON, within a size budget. `contentPreview` is the whole chunk if it fits.
 */
function searchResult(
  query: string,
  hits: readonly KnowledgeBaseHit[],
  passages: readonly Passage[],
  context: ToolContext,
): string {
  const headOf = (at: number, citation: number) => found(hits[at]!, passages[at]!, citation)
  const heads = hits.map((_, at) => JSON.stringify({ ...headOf(at, citationMax), ...emptyText }))
  const frame = JSON.stringify({ results: [], truncated: true, total: hits.length })
  const excerpts = shareAmong(
    hits.map(({ payload }) => textOf(payload?.chunkText) ?? ''),
    query,
    bytesFor(context.passageTokens) - jsonBytes(frame),
    heads.map(head => Buffer.byteLength(head) + 1),
  )
  const results = excerpts.map(({ text, isCut }, at) => ({
    ...headOf(at, context.cite(passages[at]!)),
    contentPreview: text,
    ...(isCut && { truncated: true }),
  }))
  return JSON.stringify({
    results,
    ...(results.length < hits.length && { truncated: true, total: hits.length }),
  })
}

/** Fields that {@link searchResult} adds to each hit, in their longest form without the text. */
const emptyText = { contentPreview: '', truncated: true }

function found({ id, score }: KnowledgeBaseHit, passage: Passage, citation: number) {
  const { knowledgeBaseId, documentId, chunkIndex, title, sourceFilename } = passage
  return { citation, knowledgeBaseId, documentId, chunkId: id, chunkIndex, title, sourceFilename, score }
}

/**
 * Returns as many whole chunks as fit, as JSON, and the offset of the next one. Only the first chunk can be
 * truncated.
 */
export function chunksResult<C extends Pick<Chunk, 'id' | 'chunkIndex' | 'text'>>(
  chunks: readonly C[],
  head: { offset: number },
  { cite, bytesMax }: { cite: (chunk: C) => number; bytesMax: number },
): string {
  const shown = (count: number, citations: readonly number[], first: Excerpt) => {
    const kept = chunks.slice(0, count).map(({ id, chunkIndex, text }, at) => ({
      citation: citations[at] ?? citationMax,
      id,
      chunkIndex,
      text: at === 0 ? first.text : (text ?? ''),
      ...(at === 0 && first.isCut && { truncated: true }),
    }))
    const next = count < chunks.length && { truncated: true, nextOffset: head.offset + count }
    return JSON.stringify({ ...head, returned: count, chunks: kept, ...next })
  }
  const bytesOf = (count: number, first: Excerpt) => Buffer.byteLength(shown(count, [], first))
  const whole = chunks[0]!.text ?? ''
  const [first] = shareAmong([whole], '', bytesMax - bytesOf(1, { text: '', isCut: true }))
  let count = 1
  while (count < chunks.length && !first!.isCut && bytesOf(count + 1, first!) <= bytesMax) count++
  return shown(count, chunks.slice(0, count).map(cite), first!)
}

function listedDocument({ knowledgeBaseId, documentId, sourceFilename, fileType, status }: DocumentRow) {
  return { knowledgeBaseId, documentId, sourceFilename: label(sourceFilename), fileType, status }
}

function idOf({ knowledgeBaseId }: KnowledgeBase) {
  return { knowledgeBaseId }
}

function described({ name, description }: KnowledgeBase) {
  return { name: label(name), description: label(description) }
}

/** Returns the total number of entries if some are left out. */
function cutAt(shown: readonly unknown[], total: number, { isCut }: Scope) {
  return shown.length < total || isCut ? { truncated: true, total } : {}
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, count) => total + count, 0)
}
