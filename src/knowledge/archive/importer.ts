import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { authorize, decideAccess } from '../../access/authorize.ts'
import type { Caller } from '../../access/caller.ts'
import { requirePolicy } from '../../access/policy/check.ts'
import { policyPayload } from '../../access/policy/document-fields.ts'
import { requireWorkspace } from '../../access/require-workspace.ts'
import { fullVisibility, type RowAccess } from '../../access/row-access.ts'
import { chainHash, chainStart } from '../../base/chain-hash.ts'
import { type Clock, timestamp } from '../../base/clock.ts'
import { needs } from '../../contract/access.ts'
import {
  type ArchivedChunk,
  type ArchivedDocument,
  type ArchivedRecord,
  ArchiveHeader,
  type ArchiveLine,
  archiveFormat,
  archiveVersion,
} from '../../contract/archives.ts'
import { WbError } from '../../contract/errors.ts'
import { ownerPayloadKey } from '../../contract/fields.ts'
import type { KnowledgeBase } from '../../contract/knowledge.ts'
import { builtInProvider } from '../../contract/providers.ts'
import type { ChunkingService, EmbeddingService } from '../../contract/services.ts'
import { type ContentRecord, type ContentWrite, embeddedTitle } from '../../storage/content.ts'
import type { Pager } from '../../storage/cursor.ts'
import { type RowStore, type RowTable, revisionOf, type Stored, type Write } from '../../storage/rows.ts'
import { type DocumentRow, type ImportProgress, type KnowledgeBaseRow, tables } from '../../storage/tables.ts'
import type { Services } from '../../workspaces/services.ts'
import { type BaseKey, keyOf } from '../document-key.ts'
import { baseCollectionMissing, concurrentChange } from '../guards.ts'
import { callerTurn, type IndexThreads } from '../index-threads.ts'
import { documentsWithName, domainOf, ingestKeyOf, nameKeyOf } from '../ingest/accept-text.ts'
import type { BaseContext, KnowledgeBases } from '../knowledge-bases.ts'
import { ownerPayload } from '../ownership.ts'
import { requireInheritedSize, titleOfPayload } from '../payload.ts'
import type { VectorSpace } from '../vector-space.ts'
import { damagedArchive } from './damaged-archive.ts'
import { parseArchiveLine } from './parse-lines.ts'

/** Maximum number of attempts. A part is written again if the same rows or the vector space changed in the meantime. */
const attemptsMax = 20
/** Number of lines that are added between pauses for other work. */
const linesPerTurn = 50

interface ImporterParts {
  readonly rows: RowStore
  readonly pager: Pager
  readonly clock: Clock
  readonly bases: KnowledgeBases
  readonly chunking: Services<ChunkingService>
  readonly embedding: Services<EmbeddingService>
  readonly space: VectorSpace
  readonly index: IndexThreads
  readonly whenWritable: (context: BaseContext) => Promise<void>
  readonly onRecordsChanged: (context: BaseContext) => Promise<void>
}

type ImportCaller = Pick<Caller, 'auth' | 'rowAccess' | 'signal'>

/** The settings with which an import starts. */
export interface ImportStart {
  /** First line of the file. */
  readonly header: string
  readonly name?: string | undefined
  readonly embeddingServiceId?: string | undefined
}

/** A knowledge base that is being imported, and the number of the next line. */
export interface StartedImport {
  readonly base: KnowledgeBase
  readonly nextLine: number
  readonly isNew: boolean
}

/**
 * Imports exported knowledge bases in parts. Each part is stored in one transaction, together with the number and the hash of
 * the lines so far, so an interrupted import continues with the next line. Until the last line, whose hash covers all
 * others, the knowledge base is marked as incomplete.
 */
export class Importer {
  constructor(private readonly parts: ImporterParts) {}

  /**
   * Creates the knowledge base for a file, or returns the one whose import of the same file was interrupted.
   *
   * @throws archive_damaged, archive_not_supported, embedding_service_not_found, kb_name_taken
   * @throws forbidden  the file restricts who may see documents, and the caller lacks `manage:access`
   * @throws conflict   the file restricts who may see documents, and the workspace has no row-level access
   */
  async begin(workspaceId: string, start: ImportStart, caller: ImportCaller): Promise<StartedImport> {
    const header = parseHeader(start.header)
    const isRestricted = header.rowAccess || header.policyEnabled
    await this.#requireRights(workspaceId, isRestricted, caller)
    if (header.policyDsl !== null && isRestricted) requirePolicy('policyDsl', header.policyDsl)
    const name = start.name ?? header.name
    const hash = chainHash(chainStart, start.header)
    const [existing] = await this.parts.rows.list(tables.knowledgeBases, {
      index: 'byName',
      prefix: [workspaceId, name],
      limit: 1,
    })
    const { ownerId } = await caller.rowAccess(workspaceId)
    if (existing?.row.import?.header === hash && isOwnImport(existing.row.import, ownerId))
      return { base: existing.row, nextLine: existing.row.import.lines, isNew: false }
    const embedding = await this.#findEmbedding(workspaceId, header, start.embeddingServiceId)
    const chunker = await this.#find(
      workspaceId,
      tables.chunkingServices,
      row => row.name === header.chunking.name,
    )
    const reranker =
      header.reranking &&
      (await this.#find(
        workspaceId,
        tables.rerankingServices,
        row => row.provider === header.reranking?.provider && row.modelName === header.reranking.modelName,
      ))
    const body = {
      name,
      description: header.description,
      status: header.status,
      language: header.language,
      lexical: header.lexical,
      semantic: header.semantic,
      embeddingServiceId: embedding.embeddingServiceId,
      chunkingServiceId: chunker?.chunkingServiceId,
      rerankingServiceId: reranker ? reranker.rerankingServiceId : null,
      attach: false,
    }
    const base = await this.parts.bases.provision(workspaceId, body, {
      importing: true,
      import: {
        header: hash,
        hash,
        lines: 1,
        documents: 0,
        records: 0,
        documentId: null,
        isRestricted,
        ownerId,
      },
      ...(header.folders && { folders: header.folders }),
      ...(isRestricted && { policyDsl: header.policyDsl, policyEnabled: header.policyEnabled }),
    })
    return { base, nextLine: 1, isNew: true }
  }

  /**
   * Stores lines of a file.
   *
   * @param from  number of the first line; the header is line 0
   * @returns the number of the next line, and true after the last line
   * @throws archive_damaged  a line is invalid, or the hash of the last line is wrong; nothing was stored
   * @throws conflict         the knowledge base is not being imported, or lines are missing before the first one
   */
  async add(
    baseKey: BaseKey,
    { from, lines }: { from: number; lines: readonly string[] },
    caller: ImportCaller,
  ): Promise<{ nextLine: number; isComplete: boolean }> {
    await this.#stored(baseKey)
    const turn = callerTurn(baseKey.workspaceId, caller)
    const parsed = await this.parts.index.run(turn, 'parseArchiveLines', lines)
    for (let attempt = 0; attempt < attemptsMax; attempt++) {
      const stored = await this.#stored(baseKey)
      const progress = stored.row.import
      if (!progress)
        throw new WbError('conflict', `knowledge base '${stored.row.name}' is not being imported`)
      await this.#requireRights(baseKey.workspaceId, progress.isRestricted, caller)
      const { ownerId } = await caller.rowAccess(baseKey.workspaceId)
      if (!isOwnImport(progress, ownerId))
        throw new WbError('conflict', `another caller is importing knowledge base '${stored.row.name}'`)
      const skipped = progress.lines - from
      if (skipped < 0) throw new WbError('conflict', `from: the next line to send is ${progress.lines}`)
      if (skipped >= lines.length) return { nextLine: progress.lines, isComplete: false }
      const part = { lines: lines.slice(skipped), parsed: parsed.slice(skipped) }
      const next = await this.#tryAdd(stored, progress, part, caller)
      if (next) return { nextLine: next.lines, isComplete: 'end' in part.parsed.at(-1)! }
    }
    throw concurrentChange()
  }

  /** Returns undefined if concurrent changes require another attempt. */
  async #tryAdd(
    stored: Stored<KnowledgeBaseRow>,
    progress: ImportProgress,
    { lines, parsed }: { lines: readonly string[]; parsed: readonly ArchiveLine[] },
    caller: ImportCaller,
  ): Promise<ImportProgress | undefined> {
    const { workspaceId, knowledgeBaseId } = stored.row
    const context = await this.parts.bases.openContext(workspaceId, knowledgeBaseId)
    const access = await caller.rowAccess(workspaceId)
    access.openChange(context.base, { action: 'ingest' }).authorize(true)
    const composer = new PartComposer(context, access, mayManageAccess(workspaceId, caller), this.#now())
    if (progress.documentId !== null) {
      const open = await this.parts.rows.get(
        tables.documents,
        keyOf({ workspaceId, knowledgeBaseId, documentId: progress.documentId }),
      )
      composer.document = open?.row
    }
    const next = { ...progress }
    for (const [at, line] of parsed.entries()) {
      if (at % linesPerTurn === 0) await yieldToEventLoop()
      if ('end' in line) {
        const isRight =
          at === parsed.length - 1 &&
          line.end.sha256 === next.hash &&
          line.end.documents === next.documents &&
          line.end.records === next.records
        if (!isRight) throw damagedArchive(next.lines, 'the checksum is wrong')
      } else if ('document' in line) {
        await this.#addDocument(composer, line.document, next.lines)
        next.documents++
        next.documentId = line.document.documentId
      } else {
        if ('chunk' in line) composer.addChunk(line.chunk, next.lines)
        else composer.addRecord(line.record)
        next.records++
      }
      next.hash = chainHash(next.hash, lines[at]!)
      next.lines++
    }
    const isEnd = 'end' in parsed.at(-1)!
    return (await this.#write(stored, context, composer, { next, isEnd }, caller)) ? next : undefined
  }

  async #write(
    stored: Stored<KnowledgeBaseRow>,
    context: BaseContext,
    composer: PartComposer,
    { next, isEnd }: { next: ImportProgress; isEnd: boolean },
    caller: ImportCaller,
  ): Promise<boolean> {
    const { generation, records } = await this.#embed(context, composer, caller.signal)
    if (new Set(records.map(({ id }) => id)).size < records.length)
      throw damagedArchive(next.lines, 'a record occurs twice')
    await this.parts.whenWritable(context)
    const { importing: _, import: __, ...base } = stored.row
    const row: KnowledgeBaseRow = isEnd
      ? { ...base, updatedAt: this.#now() }
      : { ...base, importing: true, import: next }
    const writes: Write[] = [
      { op: 'replace', table: tables.knowledgeBases, row, ...revisionOf(stored) },
      ...composer.documents.map((row): Write => ({ op: 'insert', table: tables.documents, row })),
    ]
    const absent = records.map(({ id }) => ({ id, documentId: null, exists: false, isVisible: true }))
    const changes: ContentWrite[] =
      records.length === 0
        ? []
        : [
            { op: 'requireOwners', ...context.key, owners: absent, visibility: fullVisibility() },
            { op: 'upsert', ...context.key, generation, records },
          ]
    const outcome = await context.store.write(changes, writes)
    if (!outcome.ok) {
      const isRecordTaken = outcome.at === writes.length && outcome.reason === 'stale'
      if (outcome.reason === 'exists' || isRecordTaken)
        throw damagedArchive(next.lines, 'a document or a record occurs twice')
      if (outcome.at >= writes.length && outcome.reason === 'absent')
        throw baseCollectionMissing(context.base)
      return false
    }
    await this.parts.onRecordsChanged(context)
    return true
  }

  /** Returns the records with their vectors. Only the built-in embedder computes any. */
  async #embed(
    context: BaseContext,
    { records }: PartComposer,
    signal: AbortSignal,
  ): Promise<{ generation: number; records: ContentRecord[] }> {
    if (!context.isFittedByRuntime)
      return { generation: context.collection.generation, records: records as ContentRecord[] }
    const passages = records.map(record => ({ title: embeddedTitle(record), text: record.text ?? '' }))
    const { generation, vectors } = await this.parts.space.embed(context, passages, 'document', signal)
    return { generation, records: records.map((record, at) => ({ ...record, vector: vectors[at]! })) }
  }

  async #addDocument(composer: PartComposer, document: ArchivedDocument, line: number): Promise<void> {
    const { context, access } = composer
    const row = composer.toRow(document)
    try {
      requireInheritedSize(row, document.chunkTotal ?? 0)
    } catch {
      throw damagedArchive(line, 'the metadata of a document is too large')
    }
    const domain = domainOf(access, row.ownerPrincipalId)
    if (document.isIngested && document.contentHash !== null) {
      const key = ingestKeyOf(context, domain, document.contentHash)
      const isTaken =
        composer.keys.has(key) || (await this.parts.rows.count(tables.documents, 'byIngestKey', [key])) > 0
      row.ingestKey = isTaken ? null : key
      composer.keys.add(key)
    }
    if (row.ingestKey !== null) {
      const name = row.sourceFilename
      const key = nameKeyOf(context, { name, domain }, [])
      if (key !== null && !composer.keys.has(key)) {
        const named = await documentsWithName(this.parts.rows, context, { name, domain })
        row.nameKey = named.some(other => other.row.nameKey === key) ? null : key
        composer.keys.add(key)
      }
    }
    composer.documents.push(row)
    composer.document = row
  }

  async #stored({ workspaceId, knowledgeBaseId }: BaseKey): Promise<Stored<KnowledgeBaseRow>> {
    const stored = await this.parts.rows.get(tables.knowledgeBases, [workspaceId, knowledgeBaseId])
    if (stored) return stored
    await this.parts.bases.get(workspaceId, knowledgeBaseId)
    throw concurrentChange()
  }

  /** Checks that an import makes nothing more visible. */
  async #requireRights(workspaceId: string, isRestricted: boolean, caller: ImportCaller): Promise<void> {
    if (!isRestricted) return
    authorize({ rule: needs('manage:access'), workspaceId }, caller)
    const { rlacEnabled, name } = await requireWorkspace(this.parts.rows, workspaceId)
    if (!rlacEnabled)
      throw new WbError(
        'conflict',
        `the file restricts who may see its documents, but row-level access is off in workspace '${name}'`,
        { hint: 'Import the file into a workspace with row-level access.' },
      )
  }

  async #findEmbedding(
    workspaceId: string,
    { embedding }: ArchiveHeader,
    id: string | undefined,
  ): Promise<EmbeddingService> {
    const { provider, modelName, embeddingDimension, distanceMetric } = embedding
    const fits = (row: EmbeddingService) =>
      row.provider === provider &&
      row.modelName === modelName &&
      row.embeddingDimension === embeddingDimension &&
      row.distanceMetric === distanceMetric
    if (id === undefined) {
      const found = await this.#find(workspaceId, tables.embeddingServices, fits)
      if (found) return found
      throw new WbError(
        'embedding_service_not_found',
        `the workspace has no embedding service with provider '${provider}', model '${modelName}', dimension ${embeddingDimension} and metric '${distanceMetric}'`,
        { hint: 'Create such a service, then import the file again.' },
      )
    }
    const chosen = await this.parts.embedding.get(workspaceId, id)
    if (chosen.embeddingDimension !== embeddingDimension)
      throw new WbError(
        'dimension_mismatch',
        `the vectors of the file have ${embeddingDimension} dimensions, but the embedding service has ${chosen.embeddingDimension}`,
      )
    const isSameModel = chosen.modelName === modelName && chosen.distanceMetric === distanceMetric
    const isSameKind = (chosen.provider === builtInProvider) === (provider === builtInProvider)
    if (isSameModel && isSameKind) return chosen
    throw new WbError(
      'vectorize_service_mismatch',
      `embeddingServiceId: the vectors of the file were created by model '${modelName}' with metric '${distanceMetric}'`,
    )
  }

  async #find<Row extends object>(
    workspaceId: string,
    table: RowTable<Row>,
    matches: (row: Row) => boolean,
  ): Promise<Row | undefined> {
    const list = { index: 'byWorkspace', prefix: [workspaceId] }
    for await (const slice of this.parts.pager.slices(table, list)) {
      const found = slice.find(({ row }) => matches(row))
      if (found) return found.row
    }
    return undefined
  }

  #now(): string {
    return timestamp(this.parts.clock)
  }
}

/** A record that has no vector if the runtime fits vectors. */
type ComposedRecord = Omit<ContentRecord, 'vector'> & { readonly vector?: Float32Array }

/** Converts the lines of a part to rows and records. */
class PartComposer {
  readonly documents: DocumentRow[] = []
  /** Unique keys that are taken: those of the documents, and those that were found in the store. */
  readonly keys = new Set<string>()
  readonly records: ComposedRecord[] = []
  /** The document to which the next chunks belong. */
  document: DocumentRow | undefined

  constructor(
    readonly context: BaseContext,
    readonly access: RowAccess,
    private readonly mayManage: boolean,
    private readonly now: string,
  ) {}

  toRow({ isIngested: _, ...document }: ArchivedDocument): DocumentRow {
    const { workspaceId, knowledgeBaseId } = this.context.base
    return {
      ...document,
      ...this.#readers(document),
      workspaceId,
      knowledgeBaseId,
      ...(this.access.isEnabled && { isVisibilityDecided: true }),
      ingestKey: null,
      nameKey: null,
      createdAt: this.now,
      updatedAt: this.now,
    }
  }

  /**
   * Without `manage:access`, a caller cannot name owners. With row-level access, only the caller then sees the documents;
   * otherwise, the list is kept for the time when row-level access is turned on.
   */
  #readers(archived: Pick<ArchivedDocument, 'visibleTo' | 'ownerPrincipalId'>) {
    if (this.mayManage) return { visibleTo: archived.visibleTo, ownerPrincipalId: archived.ownerPrincipalId }
    const { isEnabled, ownerId } = this.access
    if (!isEnabled) return { visibleTo: archived.visibleTo, ownerPrincipalId: null }
    return { visibleTo: ownerId === null ? null : [ownerId], ownerPrincipalId: ownerId }
  }

  addChunk({ index, context, text, fields, vector }: ArchivedChunk, line: number): void {
    const { document } = this
    if (!document || index >= (document.chunkTotal ?? 0))
      throw damagedArchive(line, 'a chunk has no document')
    const { documentId, knowledgeBaseId } = document
    this.records.push({
      id: `${documentId}:${index}`,
      documentId,
      chunkIndex: index,
      title: titleOfPayload(document.metadata),
      context: context ?? null,
      text,
      payload: { ...policyPayload(document), ...fields, knowledgeBaseId, documentId, chunkIndex: index },
      ...this.#decode(vector, line),
    })
  }

  addRecord({ id, text, payload, visibleTo, ownerPrincipalId, vector }: ArchivedRecord): void {
    const readers = this.#readers({ visibleTo, ownerPrincipalId })
    const { isEnabled } = this.access
    this.records.push({
      id,
      documentId: null,
      chunkIndex: null,
      title: titleOfPayload(payload),
      text,
      payload: {
        ...payload,
        ...ownerPayload({ isEnabled, ownerId: null }, readers.visibleTo),
        ...(readers.ownerPrincipalId !== null && { [ownerPayloadKey]: readers.ownerPrincipalId }),
      },
      ...this.#decode(vector, 0),
    })
  }

  #decode(encoded: string | undefined, line: number): { vector?: Float32Array } {
    const { isFittedByRuntime, collection } = this.context
    if (isFittedByRuntime) return {}
    const bytes = Buffer.from(encoded ?? '', 'base64')
    if (bytes.length !== collection.dimension * 4) throw damagedArchive(line, 'a vector has the wrong length')
    const vector = new Float32Array(collection.dimension)
    for (let at = 0; at < vector.length; at++) vector[at] = bytes.readFloatLE(at * 4)
    if (!vector.every(Number.isFinite)) throw damagedArchive(line, 'a vector contains an invalid number')
    return { vector }
  }
}

/** Returns true if a caller with this principal started the import. The number of lines is hidden from others. */
function isOwnImport(progress: ImportProgress, ownerId: string | null): boolean {
  return progress.ownerId === ownerId
}

function mayManageAccess(workspaceId: string, caller: Pick<Caller, 'auth'>): boolean {
  return decideAccess({ rule: needs('manage:access'), workspaceId }, caller).allow
}

/** @throws archive_damaged, archive_not_supported */
function parseHeader(line: string): ArchiveHeader {
  const value = parseArchiveLine(line) as Partial<ArchiveHeader> | undefined
  if (value?.format !== archiveFormat)
    throw new WbError('archive_not_supported', 'header: is not the first line of an exported knowledge base')
  if (value.version !== archiveVersion)
    throw new WbError('archive_not_supported', 'the file was created by a newer version of Workbase')
  const result = ArchiveHeader.safeParse(value)
  if (result.success) return result.data
  throw damagedArchive(0, `${result.error.issues[0]!.path.join('.')} is invalid`)
}
