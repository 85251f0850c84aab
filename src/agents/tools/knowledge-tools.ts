import type { z } from 'zod'
import type { Chunk } from '../../contract/documents.ts'
import type { KnowledgeBase, KnowledgeBaseHit } from '../../contract/knowledge.ts'
import { limits } from '../../contract/limits.ts'
import type { Documents } from '../../knowledge/documents.ts'
import { undefinedIfDeleted } from '../../knowledge/guards.ts'
import type { KnowledgeBases } from '../../knowledge/knowledge-bases.ts'
import type { ManySearcher } from '../../knowledge/many-searcher.ts'
import type { DocumentRow } from '../../storage/tables.ts'
import type { Excerpt } from './excerpt.ts'
import { createExecutableTool } from './executable-tool.ts'
import { bytesForTokens, citationMax, jsonBytes, shareAmong } from './passage-budget.ts'
import { findPassageSources, modelLabel, pageNumberField, textField } from './passages.ts'
import { findReadableBases, type ReadableBases } from './readable-bases.ts'
import { builtInTools } from './runtime-tools.ts'
import type { Tool, ToolContext, ToolPassage } from './tool.ts'
import { fitEntries, ToolError } from './tool-result.ts'

/** Read access to knowledge bases for tools. */
export interface KnowledgeReads {
  readonly bases: Pick<KnowledgeBases, 'list' | 'listExisting'>
  readonly documents: Pick<Documents, 'list' | 'count' | 'get' | 'chunks'>
  readonly many: Pick<ManySearcher, 'search'>
}

const listedMax = 25
const samplesMax = 5

const noBases = 'There are no knowledge bases.'
const noDocuments = 'There are no documents.'

/** The built-in tools. They read only what the caller can see in the knowledge bases of the call. */
export class KnowledgeTools {
  constructor(private readonly reads: KnowledgeReads) {}

  /** Returns the tools, in display order. */
  all(): Tool[] {
    const untrusted = { readsUntrusted: true }
    return [
      createExecutableTool(builtInTools.listBases, (_, context) => this.#listBases(context)),
      createExecutableTool(
        builtInTools.listDocuments,
        (args, context) => this.#listDocuments(args, context),
        untrusted,
      ),
      createExecutableTool(builtInTools.countDocuments, (args, context) =>
        this.#countDocuments(args, context),
      ),
      createExecutableTool(
        builtInTools.summarizeBases,
        (args, context) => this.#summarize(args, context),
        untrusted,
      ),
      createExecutableTool(builtInTools.search, (args, context) => this.#search(args, context), untrusted),
      createExecutableTool(
        builtInTools.getDocument,
        (args, context) => this.#getDocument(args, context),
        untrusted,
      ),
      createExecutableTool(
        builtInTools.listChunks,
        (args, context) => this.#listChunks(args, context),
        untrusted,
      ),
    ]
  }

  async #listBases(context: ToolContext): Promise<string> {
    const scope = await findReadableBases(this.reads.bases, context)
    if (scope.bases.length === 0) return noBases
    const entries = scope.bases.slice(0, listedMax).map(base => ({ ...idOf(base), ...describeBase(base) }))
    return fitEntries(entries, knowledgeBases => ({
      knowledgeBases,
      ...totalIfTruncated(knowledgeBases, scope.bases.length, scope),
    }))
  }

  async #listDocuments(args: OneOrAll, context: ToolContext): Promise<string> {
    const { documents } = this.reads
    const scope = await findReadableBases(this.reads.bases, context, args.knowledgeBaseId)
    const counts = await this.#counts(scope, context)
    const total = sum(counts)
    if (total === 0) return noDocuments
    const rows: DocumentRow[] = []
    for (const [at, { knowledgeBaseId }] of scope.bases.entries()) {
      if (counts[at] === 0 || rows.length === listedMax) continue
      const query = { limit: listedMax - rows.length }
      const page = await documents.list(context.workspaceId, knowledgeBaseId, query).catch(undefinedIfDeleted)
      rows.push(...(page?.items ?? []))
    }
    return fitEntries(rows.map(describeDocument), listed => ({
      documents: listed,
      ...totalIfTruncated(listed, total, scope),
    }))
  }

  async #countDocuments(args: OneOrAll, context: ToolContext): Promise<string> {
    const scope = await findReadableBases(this.reads.bases, context, args.knowledgeBaseId)
    if (scope.bases.length === 0) return noBases
    const counts = await this.#counts(scope, context)
    const entries = scope.bases.map((base, at) => ({ ...idOf(base), documentCount: counts[at]! }))
    return fitEntries(entries, perKnowledgeBase => ({
      total: sum(counts),
      perKnowledgeBase,
      ...(scope.isCut && { truncated: true }),
    }))
  }

  async #summarize(args: OneOrAll, context: ToolContext): Promise<string> {
    const { documents } = this.reads
    const scope = await findReadableBases(this.reads.bases, context, args.knowledgeBaseId)
    if (scope.bases.length === 0) return noBases
    const entries = await Promise.all(
      scope.bases.slice(0, listedMax).map(async base => {
        const { workspaceId, knowledgeBaseId } = base
        const query = { limit: samplesMax }
        const sample = await documents.list(workspaceId, knowledgeBaseId, query).catch(undefinedIfDeleted)
        if (!sample) return undefined
        return {
          ...idOf(base),
          ...describeBase(base),
          documentCount: await documents.count(workspaceId, knowledgeBaseId),
          sampleDocuments: sample.items.map(({ documentId, sourceFilename }) => ({
            documentId,
            sourceFilename: modelLabel(sourceFilename),
          })),
        }
      }),
    )
    const existing = entries.filter(entry => entry !== undefined)
    return fitEntries(existing, summaries => ({
      summaries,
      ...totalIfTruncated(summaries, scope.bases.length, scope),
    }))
  }

  async #search(args: z.output<typeof builtInTools.search.input>, context: ToolContext): Promise<string> {
    const { bases } = await findReadableBases(this.reads.bases, context, args.knowledgeBaseId)
    if (bases.length === 0) return noBases
    if (bases.length > limits.knowledgeBasesPerSearch)
      throw new ToolError(
        `there are more than ${limits.knowledgeBasesPerSearch} knowledge bases; set knowledgeBaseId to search one of them`,
      )
    const query = {
      text: args.query,
      topK: args.limit,
      includeEmbeddings: false,
      knowledgeBaseIds: bases.map(base => base.knowledgeBaseId),
    }
    const options = {
      visibility: context.caller.visibility,
      signal: context.signal,
      skipsDeleted: true,
    }
    const { hits } = await this.reads.many.search(context.workspaceId, query, options)
    if (hits.length === 0) return 'No passage was found.'
    const passages = await findPassageSources(this.reads.documents, context.workspaceId, hits)
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
    return fitEntries(Object.entries(row.metadata), entries => ({
      documentId,
      knowledgeBaseId,
      sourceFilename: modelLabel(sourceFilename),
      fileType,
      fileSize,
      chunkTotal,
      status,
      ingestedAt,
      metadata: Object.fromEntries(entries),
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
    const source = {
      knowledgeBaseId,
      attachmentId: null,
      documentId,
      title: modelLabel(textField(metadata.title)),
    }
    const cite = ({ id, chunkIndex, payload }: Chunk) =>
      context.cite({
        ...source,
        chunkId: id,
        chunkIndex,
        sourceFilename: modelLabel(sourceFilename),
        page: pageNumberField(payload.page),
      })
    const head = { documentId, knowledgeBaseId, chunkTotal, offset: args.offset }
    return chunksResult(chunks, head, { cite, bytesMax: bytesForTokens(context.passageTokens) })
  }

  /** @throws document_not_found, ToolError */
  async #document({ knowledgeBaseId, documentId }: OneDocument, context: ToolContext): Promise<DocumentRow> {
    await findReadableBases(this.reads.bases, context, knowledgeBaseId)
    return this.reads.documents.get(context.workspaceId, knowledgeBaseId, documentId)
  }

  /** Returns `limit` chunks from `offset` on. Chunks that the caller cannot see are not counted. */
  async #chunksFrom({ offset, limit, ...ids }: ChunksArgs, context: ToolContext): Promise<Chunk[]> {
    const documentKey = { ...ids, workspaceId: context.workspaceId }
    let toSkip = offset
    let cursor: string | undefined
    for (;;) {
      context.signal.throwIfAborted()
      const query = { limit: Math.min(limits.chunkPageMax, toSkip + limit), cursor }
      const page = await this.reads.documents.chunks(documentKey, query, context.caller)
      if (page.items.length > toSkip || page.nextCursor === null)
        return page.items.slice(toSkip, toSkip + limit)
      toSkip -= page.items.length
      cursor = page.nextCursor
    }
  }

  #counts({ bases }: ReadableBases, { workspaceId }: ToolContext): Promise<number[]> {
    return Promise.all(bases.map(base => this.reads.documents.count(workspaceId, base.knowledgeBaseId)))
  }
}

type OneOrAll = z.output<typeof builtInTools.listDocuments.input>
type OneDocument = z.output<typeof builtInTools.getDocument.input>
type ChunksArgs = z.output<typeof builtInTools.listChunks.input>

/**
 * Returns the hits of a search as JSON, within a size budget. `contentPreview` is the whole chunk if it fits.
 */
function searchResult(
  query: string,
  hits: readonly KnowledgeBaseHit[],
  passages: readonly ToolPassage[],
  context: ToolContext,
): string {
  const headOf = (at: number, citation: number) => hitEntry(hits[at]!, passages[at]!, citation)
  const heads = hits.map((_, at) => JSON.stringify({ ...headOf(at, citationMax), ...emptyTextFields }))
  const frame = JSON.stringify({ results: [], truncated: true, total: hits.length })
  const excerpts = shareAmong(
    hits.map(({ payload }) => textField(payload?.chunkText) ?? ''),
    query,
    bytesForTokens(context.passageTokens) - jsonBytes(frame),
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

/** Fields that {@link searchResult} adds to each hit, without the text. Used to compute sizes. */
const emptyTextFields = { contentPreview: '', truncated: true }

function hitEntry({ id, score }: KnowledgeBaseHit, passage: ToolPassage, citation: number) {
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
  const resultWith = (count: number, citations: readonly number[], first: Excerpt) => {
    const listed = chunks.slice(0, count).map(({ id, chunkIndex, text }, at) => ({
      citation: citations[at] ?? citationMax,
      id,
      chunkIndex,
      text: at === 0 ? first.text : (text ?? ''),
      ...(at === 0 && first.isCut && { truncated: true }),
    }))
    const next = count < chunks.length && { truncated: true, nextOffset: head.offset + count }
    return JSON.stringify({ ...head, returned: count, chunks: listed, ...next })
  }
  const bytesOf = (count: number, first: Excerpt) => Buffer.byteLength(resultWith(count, [], first))
  const whole = chunks[0]!.text ?? ''
  const [first] = shareAmong([whole], '', bytesMax - bytesOf(1, { text: '', isCut: true }))
  let count = 1
  while (count < chunks.length && !first!.isCut && bytesOf(count + 1, first!) <= bytesMax) count++
  return resultWith(count, chunks.slice(0, count).map(cite), first!)
}

function describeDocument({ knowledgeBaseId, documentId, sourceFilename, fileType, status }: DocumentRow) {
  return { knowledgeBaseId, documentId, sourceFilename: modelLabel(sourceFilename), fileType, status }
}

function idOf({ knowledgeBaseId }: KnowledgeBase) {
  return { knowledgeBaseId }
}

function describeBase({ name, description }: KnowledgeBase) {
  return { name: modelLabel(name), description: modelLabel(description) }
}

/** Returns the fields that report omitted entries; no fields if all are shown. */
function totalIfTruncated(shown: readonly unknown[], total: number, { isCut }: ReadableBases) {
  return shown.length < total || isCut ? { truncated: true, total } : {}
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, count) => total + count, 0)
}
