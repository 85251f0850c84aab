import { fullVisibility } from '../../access/row-access.ts'
import { timestamp } from '../../base/clock.ts'
import type { TextLayout } from '../../base/text-layout.ts'
import { WbError } from '../../contract/errors.ts'
import { startPayloadKey } from '../../contract/fields.ts'
import { folderOf } from '../../contract/folder-description.ts'
import { placePayloadKeys, sectionPayloadKey, tableHeadsPayloadKey } from '../../contract/payload-keys.ts'
import type { ContentWrite, RecordView } from '../../storage/content.ts'
import { revisionOf, type Stored, type Write } from '../../storage/rows.ts'
import { type DocumentRow, tables } from '../../storage/tables.ts'
import { hasSections } from '../chunk/sections.ts'
import { type ChunkedText, passagesOf } from '../chunk-text.ts'
import { type DocumentKey, keyOf } from '../document-key.ts'
import { concurrentChange } from '../guards.ts'
import { jobTurn } from '../index-threads.ts'
import { chunkInsertion, chunkPayload } from '../ingest/document-writes.ts'
import { reportChunks } from '../ingest/report-chunks.ts'
import { layoutOf } from '../ingest/structured-ingest.ts'
import type { IngestParts } from '../ingestion.ts'
import type { BaseContext } from '../knowledge-bases.ts'
import type { EmbeddedVectors } from '../passage-operations.ts'
import { contextOfChunk, titleOfPayload } from '../payload.ts'
import { undefinedIfSpaceChanged } from '../vector-space.ts'
import { readAllChunks, readPlaces, readTextOf } from './read-document-text.ts'

/** Maximum number of attempts. A document is read again if it, or its vector space, changed in the meantime. */
const attemptsMax = 100

export type RechunkOutcome = 'rechunked' | 'unchanged' | 'kept'

type RechunkParts = Pick<
  IngestParts,
  'rows' | 'clock' | 'bases' | 'chunking' | 'space' | 'index' | 'whenWritable' | 'onRecordsChanged'
>

/**
 * Splits a document into chunks with the current settings of its knowledge base, and replaces its chunks in one transaction
 * if they differ. Until then, searches find the previous chunks. Vectors of chunks that stay the same are kept, so no
 * provider embeds them again.
 *
 * @returns `kept` if the text cannot be read from the chunks; `unchanged` also for a document that is not ready, which its
 *          ingest will split, and for one that was deleted
 * @throws knowledge_base_not_found, invalid_chunker, embedding_unavailable, embedding_dimension_mismatch
 * @throws conflict  the document changed during every attempt
 */
export async function rechunkDocument(
  parts: RechunkParts,
  key: DocumentKey,
  signal: AbortSignal,
): Promise<RechunkOutcome> {
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    signal.throwIfAborted()
    const stored = await parts.rows.get(tables.documents, keyOf(key))
    if (stored?.row.status !== 'ready' || !stored.row.contentHash) return 'unchanged'
    const context = await parts.bases.openContext(key.workspaceId, key.knowledgeBaseId)
    const before = await readAllChunks(context, key.documentId)
    if (before.length === 0) return 'unchanged'
    const text = readTextOf(before)
    if (
      text === undefined ||
      (await parts.index.run(jobTurn(key.workspaceId), 'hash', text)) !== stored.row.contentHash
    ) {
      const current = await parts.rows.get(tables.documents, keyOf(key))
      // The chunks are those of another text if the document was replaced in the meantime.
      if (current?.ordinal === stored.ordinal && current.version === stored.version) return 'kept'
      continue
    }
    const { chunking, fileType, sourceFilename } = stored.row
    const isMarkdown = chunking?.isMarkdown ?? hasSections(fileType, sourceFilename)
    const read = { isMarkdown, places: readPlaces(text, before) }
    const layout = layoutOf({ layout: read, fileType, sourceFilename })
    const chunked = await chunk(parts, context, { row: stored.row, text, layout })
    if (areSame(before, chunked, titleOfPayload(stored.row.metadata))) return 'unchanged'
    const outcome = await replaceChunks(parts, context, { stored, before, chunked }, signal)
    if (outcome) return outcome
  }
  throw concurrentChange()
}

async function chunk(
  { bases, chunking, index }: RechunkParts,
  { base }: BaseContext,
  { row, text, layout }: { row: DocumentRow; text: string; layout: TextLayout },
): Promise<ChunkedText> {
  const service = await bases.boundService(chunking, base, base.chunkingServiceId)
  const {
    embedded: _,
    embeddingMs: __,
    ...chunked
  } = await index.run(jobTurn(base.workspaceId), 'prepare', {
    text,
    title: null,
    service,
    override: row.chunking?.override,
    layout,
    folder: folderOf(base.folders, row.sourceFilename)?.description,
    fittedIn: undefined,
  })
  return chunked
}

/** Payload fields that the current settings determine, and that clients or searches use. */
const comparedKeys = [
  startPayloadKey,
  sectionPayloadKey,
  tableHeadsPayloadKey,
  ...Object.values(placePayloadKeys),
]

/** Returns true if the stored chunks are those of the current settings. */
function areSame(
  before: readonly RecordView[],
  { chunks, chunkerId }: ChunkedText,
  title: string | null,
): boolean {
  return (
    before.length === chunks.length &&
    chunks.every((chunk, at) => {
      const { text, context, payload } = before[at]!
      const current = chunkPayload(chunk)
      return (
        payload['chunker.id'] === chunkerId &&
        text === chunk.text &&
        context === contextOfChunk(title, chunk) &&
        comparedKeys.every(key => payload[key] === current[key])
      )
    })
  )
}

interface ChunkReplacement {
  readonly stored: Stored<DocumentRow>
  readonly before: readonly RecordView[]
  readonly chunked: ChunkedText
}

/** Returns undefined if the document, its chunks, the knowledge base or the vector space changed in the meantime. */
async function replaceChunks(
  parts: RechunkParts,
  context: BaseContext,
  { stored, before, chunked }: ChunkReplacement,
  signal: AbortSignal,
): Promise<RechunkOutcome | undefined> {
  const { base, revision, key, store } = context
  const replacement = { stored, before, chunked }
  const embedded = await embed(parts, context, replacement, signal).catch(undefinedIfSpaceChanged)
  if (!embedded) return undefined
  await parts.whenWritable(context)
  const title = titleOfPayload(stored.row.metadata)
  const { ingestReport } = stored.row
  const row: DocumentRow = {
    ...stored.row,
    chunkTotal: chunked.chunks.length,
    updatedAt: timestamp(parts.clock),
    ...(ingestReport && { ingestReport: reportChunks(ingestReport, context, { ...chunked, title }) }),
  }
  const baseKey = [base.workspaceId, base.knowledgeBaseId]
  const rows: Write[] = [
    { op: 'require', table: tables.knowledgeBases, key: baseKey, ...revision },
    { op: 'replace', table: tables.documents, row, ...revisionOf(stored) },
  ]
  const insertion = insertionOf(context, row, { ...chunked, ...embedded })
  if (!insertion) return 'kept'
  const { documentId } = row
  const changes: ContentWrite[] = [
    { op: 'requireRecords', ...key, records: before.map(({ record }) => record) },
    { op: 'deleteDocument', ...key, documentId },
    ...insertion,
  ]
  const outcome = await store.write(changes, rows)
  if (outcome.ok) {
    await parts.onRecordsChanged(context)
    return 'rechunked'
  }
  // A record that was stored directly has the ID of a new chunk.
  return outcome.at === rows.length + 2 ? 'kept' : undefined
}

/** Returns undefined if the metadata is too large for the new number of chunks. */
function insertionOf(...args: Parameters<typeof chunkInsertion>): ContentWrite[] | undefined {
  try {
    return chunkInsertion(...args)
  } catch (error) {
    if (error instanceof WbError && error.code === 'invalid_metadata') return undefined
    throw error
  }
}

/** Embeds the chunks, except those whose text and context a previous chunk also has, if a provider embeds them. */
async function embed(
  { space, index }: RechunkParts,
  context: BaseContext,
  { stored, before, chunked }: ChunkReplacement,
  signal: AbortSignal,
): Promise<EmbeddedVectors> {
  const title = titleOfPayload(stored.row.metadata)
  const passages = passagesOf(title, chunked.chunks)
  if (context.isFittedByRuntime)
    return index.run(jobTurn(context.key.workspaceId), 'embed', { key: context.key, passages })
  const numbers = before.map(({ record }) => record)
  const views = await context.store.read(context.key, numbers, {
    vectors: true,
    visibility: fullVisibility(),
  })
  const known = new Map(views.map(view => [identityOf(view), view.vector]))
  const vectors = chunked.chunks.map(chunk =>
    known.get(identityOf({ text: chunk.text, context: contextOfChunk(title, chunk) })),
  )
  const missing = passages.filter((_, at) => !vectors[at])
  const embedded = await space.embed(context, missing, 'document', signal, { retryPolicy: 'job' })
  const added = embedded.vectors.values()
  return {
    generation: embedded.generation,
    vectors: vectors.map(vector => vector ?? added.next().value!),
  }
}

function identityOf({ text, context }: Pick<RecordView, 'text' | 'context'>): string {
  return JSON.stringify([text, context])
}
