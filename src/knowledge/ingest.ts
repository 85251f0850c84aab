import type { Caller } from '../access/caller.ts'
import { type Clock, timestamp } from '../base/clock.ts'
import { newId, sha256 } from '../base/id.ts'
import type { Host } from '../base/threads.ts'
import type { Document, Ingest } from '../contract/documents.ts'
import { WbError } from '../contract/errors.ts'
import type { ChunkingService } from '../contract/services.ts'
import type { ContentRecord, ContentWrite } from '../storage/content.ts'
import type { Outcome, RowStore, Write } from '../storage/rows.ts'
import { type DocumentRow, tables } from '../storage/tables.ts'
import type { Services } from '../workspaces/services.ts'
import type { BaseContext, KnowledgeBases } from './bases.ts'
import { collectionGone } from './guards.ts'
import type { Embedded, PassageOps, Prepared } from './passages.ts'
import { documentPayload, titleOf } from './payload.ts'
import type { Space } from './space.ts'

/** Texts up to this length are hashed on the spot; it takes under a millisecond. */
const hashHereChars = 250_000
/** Documents of one file name that are looked at; more is not a name any more. */
const namesakesMax = 1_000
/** Each attempt but the last lost against another write, of which as many as this at once are not expected. */
const attemptsMax = 100

export type IngestResult =
  | { readonly kind: 'ingested'; readonly document: Document; readonly chunks: number }
  | {
      readonly kind: 'existing'
      readonly document: Document
      readonly outcome: 'duplicate' | 'name_conflict'
    }

interface Parts {
  readonly rows: RowStore
  readonly clock: Clock
  readonly bases: KnowledgeBases
  readonly chunking: Services<ChunkingService>
  readonly space: Space
  /** Chunking and embedding of what is ingested. */
  readonly index: Host<PassageOps>
  /** Told after each document, so that a fit follows when it is due. */
  readonly ingested: (context: BaseContext) => void
}

/** What is known of a text before it is chunked. */
interface Intake {
  readonly context: BaseContext
  readonly body: Ingest
  readonly documentId: string
  readonly contentHash: string
  readonly ingestKey: string
  readonly nameKey: string | null
  /** Documents that this one takes the place of. */
  readonly replaced: readonly DocumentRow[]
}

/** The chunks of a text with a vector each. */
type Embeddings = Omit<Prepared, 'embedded'> & Embedded

/** Turns texts into documents: chunk, embed, and write document, chunks and index in one transaction. */
export class Ingestion {
  constructor(private readonly parts: Parts) {}

  /**
   * Ingest one text. A text that the knowledge base holds already, or whose file name another text has, changes
   * nothing unless `overwriteOnNameConflict` is set; then the old document goes in the same transaction.
   *
   * @throws conflict                the document id is taken
   * @throws invalid_chunker         service and override do not make a valid chunker; the document is kept as failed
   * @throws embedding_unavailable, embedding_dimension_mismatch  likewise
   */
  async ingest(
    workspaceId: string,
    knowledgeBaseId: string,
    body: Ingest,
    caller: Caller,
  ): Promise<IngestResult> {
    const contentHash =
      body.text.length <= hashHereChars ? sha256(body.text) : await this.parts.index.run('hash', body.text)
    let prepared: Embeddings | undefined
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const context = await this.parts.bases.context(workspaceId, knowledgeBaseId)
      const intake = await this.accept(context, body, contentHash)
      if ('kind' in intake) return intake
      prepared ??= await this.prepare(intake, caller)
      const written = await this.write(intake, prepared)
      if (typeof written === 'object') {
        this.parts.ingested(context)
        return written
      }
      if (written === 'space moved') prepared = undefined
    }
    throw new WbError('conflict', 'other writes kept coming first; nothing was written')
  }

  /** Compare with what is there; ends here when the text or its name is known. @see contract 11.4 */
  private async accept(
    context: BaseContext,
    body: Ingest,
    contentHash: string,
  ): Promise<Intake | IngestResult> {
    const { workspaceId, knowledgeBaseId } = context.base
    // Ids of knowledge bases may repeat in another workspace.
    const domain = `${workspaceId}:${knowledgeBaseId}:`
    const ingestKey = `${domain}:${contentHash}`
    const nameKey = body.sourceFilename ? `${domain}:${body.sourceFilename}` : null
    const same = await this.withIngestKey(ingestKey)
    if (same) return { kind: 'existing', document: shown(same), outcome: 'duplicate' }
    const namesakes = await this.namesakes(context, body.sourceFilename)
    const rival = namesakes.find(row => row.status !== 'failed')
    if (rival && !body.overwriteOnNameConflict)
      return { kind: 'existing', document: shown(rival), outcome: 'name_conflict' }
    const documentId = body.documentId ?? newId()
    const taken = body.documentId && (await this.withId(context, documentId))
    if (taken && taken.status !== 'failed') throw idTaken(documentId)
    const isNamesake = namesakes.some(row => row.documentId === documentId)
    const replaced = taken && !isNamesake ? [...namesakes, taken] : namesakes
    return { context, body, documentId, contentHash, ingestKey, nameKey, replaced }
  }

  private async prepare(intake: Intake, caller: Caller): Promise<Embeddings> {
    const { context, body } = intake
    try {
      const service = await this.parts.chunking.get(context.base.workspaceId, context.base.chunkingServiceId)
      const title = titleOf(body.metadata)
      const { embedded, ...cut } = await this.parts.index.run('prepare', {
        text: body.text,
        title,
        service,
        override: body.chunker,
        fittedIn: context.fitted ? context.key : undefined,
      })
      if (embedded) return { ...cut, ...embedded }
      const passages = cut.chunks.map(text => ({ title, text }))
      return { ...cut, ...(await this.parts.space.embed(context, passages, 'document', caller.signal)) }
    } catch (error) {
      await this.keepFailed(intake, error)
      throw error
    }
  }

  /** A word in place of a result: another write came first, begin again. */
  private async write(
    intake: Intake,
    prepared: Embeddings,
  ): Promise<IngestResult | 'space moved' | 'rival came first'> {
    const { context } = intake
    const now = timestamp(this.parts.clock)
    const document = this.row(intake, {
      status: 'ready',
      chunkTotal: prepared.chunks.length,
      ingestedAt: now,
      updatedAt: now,
    })
    const { ingestKey, nameKey } = intake
    const unit = replacing(context, intake.replaced, { ...document, ingestKey, nameKey })
    const records = recordsOf(document, prepared)
    const upsert: ContentWrite = { op: 'upsert', ...context.key, generation: prepared.generation, records }
    const outcome = await context.store.write([...unit.changes, upsert], unit.rows)
    if (outcome.ok) return { kind: 'ingested', document, chunks: records.length }
    await this.refuse(intake, outcome, unit.rows.length)
    return outcome.at >= unit.rows.length ? 'space moved' : 'rival came first'
  }

  private async refuse(intake: Intake, outcome: Outcome & { ok: false }, rows: number): Promise<void> {
    const { workspaceId, knowledgeBaseId } = intake.context.base
    if (outcome.at === 0) await this.parts.bases.get(workspaceId, knowledgeBaseId)
    if (outcome.reason === 'exists') throw idTaken(intake.documentId)
    if (outcome.reason === 'absent' && outcome.at >= rows) throw collectionGone(intake.context.base)
  }

  /** Keep a trace of what could not be ingested; it stands in nobody's way when it is sent again. */
  private async keepFailed(intake: Intake, error: unknown): Promise<void> {
    const { context } = intake
    const errorMessage = error instanceof WbError ? error.message : 'the text could not be ingested'
    const row = this.row(intake, { status: 'failed', errorMessage, updatedAt: timestamp(this.parts.clock) })
    const earlier = intake.replaced.filter(({ status }) => status === 'failed')
    const unit = replacing(context, earlier, { ...row, ingestKey: null, nameKey: null })
    await context.store.write(unit.changes, unit.rows)
  }

  private row(intake: Intake, state: Partial<Document> & Pick<Document, 'status' | 'updatedAt'>): Document {
    const { body, context } = intake
    return {
      workspaceId: context.base.workspaceId,
      knowledgeBaseId: context.base.knowledgeBaseId,
      documentId: intake.documentId,
      sourceDocId: body.sourceDocId,
      sourceFilename: body.sourceFilename,
      fileType: body.fileType,
      fileSize: body.fileSize,
      contentHash: intake.contentHash,
      chunkTotal: null,
      ingestedAt: null,
      errorMessage: null,
      metadata: body.metadata,
      visibleTo: body.visibleTo ?? null,
      ownerPrincipalId: body.ownerPrincipalId ?? null,
      ...state,
    }
  }

  private async withId({ base }: BaseContext, documentId: string): Promise<DocumentRow | undefined> {
    const key = [base.workspaceId, base.knowledgeBaseId, documentId]
    return (await this.parts.rows.get(tables.documents, key))?.row
  }

  private async withIngestKey(ingestKey: string): Promise<DocumentRow | undefined> {
    const [stored] = await this.parts.rows.list(tables.documents, {
      index: 'byIngestKey',
      prefix: [ingestKey],
      limit: 1,
    })
    return stored?.row
  }

  private async namesakes(context: BaseContext, name: string | null): Promise<DocumentRow[]> {
    if (!name) return []
    const { workspaceId, knowledgeBaseId } = context.base
    const found = await this.parts.rows.list(tables.documents, {
      index: 'byFilename',
      prefix: [workspaceId, knowledgeBaseId, name],
      limit: namesakesMax,
    })
    return found.map(stored => stored.row)
  }
}

/** A document in the place of others, as long as its knowledge base is there. */
function replacing(
  { base, key }: BaseContext,
  replaced: readonly DocumentRow[],
  row: DocumentRow,
): { rows: Write[]; changes: ContentWrite[] } {
  const place = [base.workspaceId, base.knowledgeBaseId]
  return {
    rows: [
      { op: 'require', table: tables.knowledgeBases, key: place },
      ...replaced.map(
        ({ documentId }): Write => ({ op: 'delete', table: tables.documents, key: [...place, documentId] }),
      ),
      { op: 'insert', table: tables.documents, row },
    ],
    changes: replaced.map(({ documentId }) => ({ op: 'deleteDocument', ...key, documentId })),
  }
}

function recordsOf(document: Document, prepared: Embeddings): ContentRecord[] {
  const { knowledgeBaseId, documentId } = document
  const title = titleOf(document.metadata)
  return prepared.chunks.map((text, chunkIndex) => ({
    id: `${documentId}:${chunkIndex}`,
    documentId,
    chunkIndex,
    title,
    text,
    payload: {
      ...documentPayload(document),
      knowledgeBaseId,
      documentId,
      chunkIndex,
      'chunker.id': prepared.chunkerId,
    },
    vector: prepared.vectors[chunkIndex]!,
  }))
}

/** A document without what only the runtime sees of it. */
function shown({ ingestKey: _, nameKey: __, ...document }: DocumentRow): Document {
  return document
}

function idTaken(documentId: string): WbError {
  return new WbError('conflict', `document with id '${documentId}' already exists`)
}
