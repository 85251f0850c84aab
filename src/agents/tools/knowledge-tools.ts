import type { z } from 'zod'
import type { Chunk } from '../../contract/documents.ts'
import { type FolderDescription, firstOfFolders, folderOf } from '../../contract/folder-description.ts'
import type { KnowledgeBase, KnowledgeBaseHit } from '../../contract/knowledge.ts'
import { limits } from '../../contract/limits.ts'
import type { Documents } from '../../knowledge/documents.ts'
import { undefinedIfDeleted } from '../../knowledge/guards.ts'
import type { KnowledgeBases } from '../../knowledge/knowledge-bases.ts'
import type { PassageVisibility } from '../../knowledge/passage-visibility.ts'
import type { ManySearcher } from '../../knowledge/search/many-searcher.ts'
import type { DocumentRow } from '../../storage/tables.ts'
import { toSearchCaller } from '../search-caller.ts'
import type { Excerpt } from './excerpt.ts'
import { createExecutableTool } from './executable-tool.ts'
import { bytesForTokens, citationMax, fitPassages, jsonBytes } from './passage-budget.ts'
import { findPassageSources, pageOf, textField, truncateLabel } from './passages.ts'
import { findReadableBases, type ReadableBases } from './readable-bases.ts'
import { builtInTools } from './runtime-tools.ts'
import type { Tool, ToolContext, ToolPassage } from './tool.ts'
import { fitEntries, ToolError } from './tool-result.ts'

/** Read access to knowledge bases for tools. */
export interface KnowledgeReads {
  readonly bases: Pick<KnowledgeBases, 'list' | 'listExisting'>
  readonly documents: Pick<Documents, 'list' | 'count' | 'get' | 'findForHit' | 'chunks'>
  /** Searches several knowledge bases at once. */
  readonly manySearcher: Pick<ManySearcher, 'search'>
  readonly passages: Pick<PassageVisibility, 'open'>
}

const listedMax = 25
const samplesMax = 5

const noBases = 'There are no knowledge bases.'
const noDocuments = 'There are no documents.'

/** The built-in tools. They read only content that is visible to the caller, in the knowledge bases of the call. */
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
    const readable = await findReadableBases(this.reads.bases, context)
    if (readable.bases.length === 0) return noBases
    const entries = readable.bases.slice(0, listedMax).map(base => describeBase(base))
    return fitEntries(entries, knowledgeBases => ({
      knowledgeBases,
      ...truncationFields(knowledgeBases, readable.bases.length, readable),
    }))
  }

  async #listDocuments(args: KnowledgeBaseArgs, context: ToolContext): Promise<string> {
    const { documents } = this.reads
    const readable = await findReadableBases(this.reads.bases, context, args.knowledgeBaseId)
    const counts = await this.#documentCounts(readable, context)
    const total = sum(counts)
    if (total === 0) return noDocuments
    const rows: DocumentRow[] = []
    for (const [at, { knowledgeBaseId }] of readable.bases.entries()) {
      if (counts[at] === 0 || rows.length === listedMax) continue
      const query = { limit: listedMax - rows.length }
      const baseKey = { workspaceId: context.workspaceId, knowledgeBaseId }
      const page = await documents.list(baseKey, query, context.caller).catch(undefinedIfDeleted)
      rows.push(...(page?.items ?? []))
    }
    for (const row of rows) context.addSource(row)
    const baseOf = new Map(readable.bases.map(base => [base.knowledgeBaseId, base]))
    const folders = firstOfFolders(
      rows,
      row => folderOf(baseOf.get(row.knowledgeBaseId)!.folders, row.sourceFilename),
      row => row.knowledgeBaseId,
    )
    const entries = rows.map((row, at) => ({ ...describeDocument(row), ...folderField(folders[at]) }))
    return fitEntries(entries, listed => ({
      documents: listed,
      ...truncationFields(listed, total, readable),
    }))
  }

  async #countDocuments(args: KnowledgeBaseArgs, context: ToolContext): Promise<string> {
    const readable = await findReadableBases(this.reads.bases, context, args.knowledgeBaseId)
    if (readable.bases.length === 0) return noBases
    const counts = await this.#documentCounts(readable, context)
    const entries = readable.bases.map((base, at) => ({
      knowledgeBaseId: base.knowledgeBaseId,
      documentCount: counts[at]!,
    }))
    return fitEntries(entries, perKnowledgeBase => ({
      total: sum(counts),
      perKnowledgeBase,
      ...(readable.isTruncated && { truncated: true }),
    }))
  }

  async #summarize(args: KnowledgeBaseArgs, context: ToolContext): Promise<string> {
    const { documents } = this.reads
    const readable = await findReadableBases(this.reads.bases, context, args.knowledgeBaseId)
    if (readable.bases.length === 0) return noBases
    const entries = await Promise.all(
      readable.bases.slice(0, listedMax).map(async base => {
        const query = { limit: samplesMax }
        const sample = await documents.list(base, query, context.caller).catch(undefinedIfDeleted)
        if (!sample) return undefined
        for (const row of sample.items) context.addSource(row)
        return {
          ...describeBase(base),
          documentCount: await this.#documentCount(base, context),
          sampleDocuments: sample.items.map(({ documentId, sourceFilename }) => ({
            documentId,
            sourceFilename: truncateLabel(sourceFilename),
          })),
        }
      }),
    )
    const existing = entries.filter(entry => entry !== undefined)
    return fitEntries(existing, summaries => ({
      summaries,
      ...truncationFields(summaries, readable.bases.length, readable),
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
      includeFolder: true,
      knowledgeBaseIds: bases.map(base => base.knowledgeBaseId),
    }
    const searchCaller = toSearchCaller(context.caller, context.signal)
    const { hits } = await this.reads.manySearcher.search(context.workspaceId, query, searchCaller)
    if (hits.length === 0) return 'No passage was found.'
    const passages = await findPassageSources(this.reads.documents, context, hits)
    return searchResult(args.query, hits, passages, context)
  }

  async #getDocument(args: DocumentArgs, context: ToolContext): Promise<string> {
    const row = await this.#document(args, context)
    context.addSource(row)
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
      sourceFilename: truncateLabel(sourceFilename),
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
      title: truncateLabel(textField(metadata.title)),
    }
    const cite = ({ id, chunkIndex, payload, text }: Chunk) => {
      const passage = {
        ...source,
        chunkId: id,
        chunkIndex,
        sourceFilename: truncateLabel(sourceFilename),
        page: pageOf(payload),
      }
      return context.cite(passage, text ?? '')
    }
    const documentFields = { documentId, knowledgeBaseId, chunkTotal, offset: args.offset }
    return chunksResult(chunks, documentFields, { cite, bytesMax: bytesForTokens(context.passageTokens) })
  }

  /** @throws document_not_found, ToolError */
  async #document({ knowledgeBaseId, documentId }: DocumentArgs, context: ToolContext): Promise<DocumentRow> {
    await findReadableBases(this.reads.bases, context, knowledgeBaseId)
    const documentKey = { workspaceId: context.workspaceId, knowledgeBaseId, documentId }
    return this.reads.documents.get(documentKey, context.caller)
  }

  /** Returns up to `limit` chunks, starting at `offset`. Skips and does not count chunks that the caller cannot see. */
  async #chunksFrom({ offset, limit, ...ids }: ChunksArgs, context: ToolContext): Promise<Chunk[]> {
    const documentKey = { ...ids, workspaceId: context.workspaceId }
    let remainingOffset = offset
    let cursor: string | undefined
    for (;;) {
      context.signal.throwIfAborted()
      const query = { limit: Math.min(limits.chunkPageMax, remainingOffset + limit), cursor }
      const page = await this.reads.documents.chunks(documentKey, query, context.caller)
      if (page.items.length > remainingOffset || page.nextCursor === null)
        return page.items.slice(remainingOffset, remainingOffset + limit)
      remainingOffset -= page.items.length
      cursor = page.nextCursor
    }
  }

  #documentCounts({ bases }: ReadableBases, context: ToolContext): Promise<number[]> {
    return Promise.all(bases.map(base => this.#documentCount(base, context)))
  }

  /** Returns the number of visible documents; 0 if the knowledge base was deleted in the meantime. */
  async #documentCount(base: KnowledgeBase, { caller }: ToolContext): Promise<number> {
    return (await this.reads.documents.count(base, caller).catch(undefinedIfDeleted)) ?? 0
  }
}

type KnowledgeBaseArgs = z.output<typeof builtInTools.listDocuments.input>
type DocumentArgs = z.output<typeof builtInTools.getDocument.input>
type ChunksArgs = z.output<typeof builtInTools.listChunks.input>

/** Returns search hits as JSON, within a size limit. `contentPreview` contains the whole chunk if it fits. */
function searchResult(
  query: string,
  hits: readonly KnowledgeBaseHit[],
  passages: readonly ToolPassage[],
  context: ToolContext,
): string {
  const folders = firstOfFolders(
    hits,
    ({ folder }) => folder,
    ({ knowledgeBaseId }) => knowledgeBaseId,
  )
  const fieldsOf = (at: number, citation: number) => ({
    ...hitFields(hits[at]!, passages[at]!, citation),
    ...folderField(folders[at]),
  })
  const entriesWithoutText = hits.map((_, at) =>
    JSON.stringify({ ...fieldsOf(at, citationMax), ...emptyTextFields }),
  )
  const emptyResult = JSON.stringify({ results: [], truncated: true, total: hits.length })
  const excerpts = fitPassages(
    hits.map(({ payload }) => textField(payload?.chunkText) ?? ''),
    query,
    bytesForTokens(context.passageTokens) - jsonBytes(emptyResult),
    entriesWithoutText.map(entry => Buffer.byteLength(entry) + 1),
  )
  const results = excerpts.map(({ text, isCut }, at) => ({
    ...fieldsOf(at, context.cite(passages[at]!, text)),
    contentPreview: text,
    ...(isCut && { truncated: true }),
  }))
  return JSON.stringify({
    results,
    ...(results.length < hits.length && { truncated: true, total: hits.length }),
  })
}

/** Empty values of the fields that {@link searchResult} adds to each hit, to compute the size of a hit without text. */
const emptyTextFields = { contentPreview: '', truncated: true }

function hitFields({ id, score }: KnowledgeBaseHit, passage: ToolPassage, citation: number) {
  const { knowledgeBaseId, documentId, chunkIndex, title, sourceFilename } = passage
  return { citation, knowledgeBaseId, documentId, chunkId: id, chunkIndex, title, sourceFilename, score }
}

/**
 * Returns chunks as JSON, as many as fit, and the offset of the next chunk. The first chunk is truncated if it does not
 * fit; all others are whole.
 */
export function chunksResult<C extends Pick<Chunk, 'id' | 'chunkIndex' | 'text'>>(
  chunks: readonly C[],
  documentFields: { offset: number },
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
    const next = count < chunks.length && { truncated: true, nextOffset: documentFields.offset + count }
    return JSON.stringify({ ...documentFields, returned: count, chunks: listed, ...next })
  }
  const bytesOf = (count: number, first: Excerpt) => Buffer.byteLength(resultWith(count, [], first))
  const firstText = chunks[0]!.text ?? ''
  const [first] = fitPassages([firstText], '', bytesMax - bytesOf(1, { text: '', isCut: true }))
  let count = 1
  while (count < chunks.length && !first!.isCut && bytesOf(count + 1, first!) <= bytesMax) count++
  return resultWith(count, chunks.slice(0, count).map(cite), first!)
}

/** Returns the field that shows the description of a folder, with the first item of the folder only. */
function folderField(folder: FolderDescription | undefined) {
  return folder && { folder: { path: truncateLabel(folder.path), description: folder.description } }
}

function describeDocument({ knowledgeBaseId, documentId, sourceFilename, fileType, status }: DocumentRow) {
  return { knowledgeBaseId, documentId, sourceFilename: truncateLabel(sourceFilename), fileType, status }
}

function describeBase({ knowledgeBaseId, name, description }: KnowledgeBase) {
  return { knowledgeBaseId, name: truncateLabel(name), description: truncateLabel(description) }
}

/** Returns the fields that report omitted entries; no fields if none were omitted. */
function truncationFields(included: readonly unknown[], total: number, { isTruncated }: ReadableBases) {
  return included.length < total || isTruncated ? { truncated: true, total } : {}
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, count) => total + count, 0)
}
