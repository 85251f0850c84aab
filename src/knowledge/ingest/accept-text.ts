import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import { documentMatcher } from '../../access/policy/document-fields.ts'
import type { RowAccess } from '../../access/row-access.ts'
import { newId } from '../../base/id.ts'
import type { Document, FileCheck, FileState } from '../../contract/documents.ts'
import { WbError } from '../../contract/errors.ts'
import { isLastBatch } from '../../storage/cursor.ts'
import type { RowStore, Stored } from '../../storage/rows.ts'
import { type DeletedDocumentRow, type DocumentRow, tables } from '../../storage/tables.ts'
import type { Visibility } from '../../storage/visibility.ts'
import { requireImported } from '../guards.ts'
import type { BaseContext } from '../knowledge-bases.ts'
import { withOwner } from '../ownership.ts'
import { entriesWithId } from '../trash/reserved-ids.ts'
import type { StructuredIngest } from './structured-ingest.ts'

/** Maximum number of documents of a domain with the same file name that are read. */
const sameNameMax = 1_000
/** Size of a read of them. */
const batchSize = { limit: sameNameMax, charsMax: 1_000_000 }

/** A text that has passed the checks of {@link acceptText}, but has not been chunked yet. */
export interface AcceptedIngest {
  readonly context: BaseContext
  readonly body: StructuredIngest
  readonly documentId: string
  readonly contentHash: string
  readonly ingestKey: string
  /** Null without a file name. */
  readonly nameKey: string | null
  /** Access of the caller when the text was accepted. */
  readonly access: RowAccess
  /** Documents to delete when the new document is stored. */
  readonly replaced: readonly Stored<DocumentRow>[]
  /** Entries of the trash with its ID, to delete when it is stored. */
  readonly replacedEntries: readonly Stored<DeletedDocumentRow>[]
}

/** An existing document with the same text or file name. */
export interface ExistingDocument {
  readonly kind: 'existing'
  readonly document: Document
  readonly outcome: 'duplicate' | 'name_conflict'
}

/**
 * Checks whether there is already a document with the same text, file name or ID. This includes documents that are still
 * being ingested. With row-level access, considers only documents of the same owner that the caller may see.
 *
 * @returns the existing document if the new text must not be ingested
 * @throws conflict  another document has the requested ID, or a document in the trash that the caller may not see
 * @see docs/http.md#documents-and-chunks
 */
export async function acceptText(
  rows: RowStore,
  context: BaseContext,
  input: { readonly body: StructuredIngest; readonly contentHash: string; readonly access: RowAccess },
): Promise<AcceptedIngest | ExistingDocument> {
  const { contentHash, access } = input
  const body = withOwner(input.body, access)
  requireImported(context.base)
  const change = access.openChange(context.base, { action: 'ingest' })
  change.authorize(true)
  const isVisible = documentMatcher(change.visibility)
  const domain = domainOf(access, body.ownerPrincipalId ?? null)
  const firstKey = ingestKeyOf(context, domain, contentHash)
  const { ingestKey, duplicate } = await findIngestKey(rows, firstKey, isVisible)
  if (duplicate) return { kind: 'existing', document: toDocument(duplicate), outcome: 'duplicate' }
  const allWithName = await documentsWithName(rows, context, { name: body.sourceFilename, domain })
  const sameName = allWithName.filter(({ row }) => isVisible(row))
  const conflicting = sameName.find(({ row }) => row.status !== 'failed')
  if (conflicting && !body.overwriteOnNameConflict)
    return { kind: 'existing', document: toDocument(conflicting.row), outcome: 'name_conflict' }
  const documentId = body.documentId ?? newId()
  const existing = body.documentId && (await findById(rows, context, documentId))
  if (existing && (existing.row.status !== 'failed' || !isVisible(existing.row)))
    throw documentIdTaken(documentId)
  const { workspaceId, knowledgeBaseId } = context.base
  const documentKey = { workspaceId, knowledgeBaseId, documentId }
  const replacedEntries = body.documentId ? await entriesWithId(rows, documentKey, change.visibility) : []
  if (!replacedEntries) throw documentIdTaken(documentId)
  const hasSameName = sameName.some(({ row }) => row.documentId === documentId)
  const replaced = existing && !hasSameName ? [...sameName, existing] : sameName
  const hidden = allWithName.filter(({ row }) => !isVisible(row))
  const nameKey = nameKeyOf(context, { name: body.sourceFilename, domain }, hidden)
  return {
    context,
    body,
    documentId,
    contentHash,
    ingestKey,
    nameKey,
    access,
    replaced,
    replacedEntries,
  }
}

/**
 * Compares files with the documents that an ingest of them would replace: those of the same owner with the same name that the
 * caller may see. A document that was not uploaded as a file has the hash of its text.
 *
 * @returns the states in the order of the files
 */
export async function statesOfFiles(
  rows: RowStore,
  context: BaseContext,
  { files }: FileCheck,
  access: RowAccess,
): Promise<FileState[]> {
  const change = access.openChange(context.base, { action: 'ingest' })
  change.authorize(true)
  const isVisible = documentMatcher(change.visibility)
  const domain = domainOf(access, access.ownerId)
  const states: FileState[] = []
  const hashesByName = new Map<string, ReadonlySet<unknown>>()
  for (const { sourceFilename, fileHash } of files) {
    let hashes = hashesByName.get(sourceFilename)
    if (!hashes) {
      await yieldToEventLoop()
      const named = await documentsWithName(rows, context, { name: sourceFilename, domain })
      const stored = named.filter(({ row }) => row.status !== 'failed' && isVisible(row))
      hashes = new Set(stored.map(({ row }) => row.metadata.fileHash ?? row.contentHash))
      hashesByName.set(sourceFilename, hashes)
    }
    states.push(hashes.size === 0 ? 'new' : hashes.has(fileHash) ? 'unchanged' : 'changed')
  }
  return states
}

/**
 * The documents among which texts and file names are unique: those of one owner if row-level access is on, null for
 * documents without an owner; undefined for all documents.
 */
export type IngestDomain = string | null | undefined

/** Returns the domain of a document with an owner. */
export function domainOf({ isEnabled }: RowAccess, ownerPrincipalId: string | null): IngestDomain {
  return isEnabled ? ownerPrincipalId : undefined
}

/** Returns the unique key of a text in a domain of a knowledge base, unless a hidden document has it. */
export function ingestKeyOf(context: BaseContext, domain: IngestDomain, contentHash: string): string {
  return `${keyPrefix(context, domain)}:${contentHash}`
}

/** A file name in a domain. */
interface DomainName {
  readonly name: string | null
  readonly domain: IngestDomain
}

/**
 * Returns the unique key of a file name in a knowledge base; null without a file name. Skips the keys of hidden documents:
 * ingests of the name must affect each other as if these did not exist.
 *
 * @param hidden  the documents of the domain with the file name that the caller cannot see
 */
export function nameKeyOf(
  context: BaseContext,
  { name, domain }: DomainName,
  hidden: readonly Stored<DocumentRow>[],
): string | null {
  if (!name) return null
  const taken = new Set(hidden.map(({ row }) => row.nameKey))
  const prefix = keyPrefix(context, domain)
  for (let skipped = 0; ; skipped++) {
    const nameKey = skipped === 0 ? `${prefix}:${name}` : `${prefix}#${skipped}:${name}`
    if (!taken.has(nameKey)) return nameKey
  }
}

/**
 * Returns the documents of a domain with a file name, oldest first. Reads past any number of documents of other domains: they
 * must not affect the result.
 */
export async function documentsWithName(
  rows: RowStore,
  { base: { workspaceId, knowledgeBaseId } }: BaseContext,
  { name, domain }: DomainName,
): Promise<Stored<DocumentRow>[]> {
  if (!name) return []
  const list = { index: 'byFilename', prefix: [workspaceId, knowledgeBaseId, name], ...batchSize }
  const found: Stored<DocumentRow>[] = []
  let after: number[] | undefined
  for (;;) {
    const page = await rows.list(tables.documents, { ...list, ...(after && { after }) })
    const inDomain = domain === undefined ? page : page.filter(({ row }) => row.ownerPrincipalId === domain)
    found.push(...inDomain.slice(0, sameNameMax - found.length))
    if (isLastBatch(page, batchSize) || found.length === sameNameMax) return found
    after = [page.at(-1)!.ordinal]
    await yieldToEventLoop()
  }
}

/**
 * Returns the unique keys of a document that is restored, or the visible document that has its text or its file name now. A
 * document without unique keys gets none.
 */
export async function restoredKeys(
  rows: RowStore,
  context: BaseContext,
  input: { readonly document: DocumentRow; readonly access: RowAccess; readonly visibility: Visibility },
): Promise<
  | Pick<DocumentRow, 'ingestKey' | 'nameKey'>
  | { readonly existing: DocumentRow; readonly has: 'text' | 'name' }
> {
  const { document, access, visibility } = input
  const isVisible = documentMatcher(visibility)
  const domain = domainOf(access, document.ownerPrincipalId)
  const named = { name: document.sourceFilename, domain }
  const allWithName = await documentsWithName(rows, context, named)
  const sameName = allWithName.find(({ row }) => isVisible(row) && row.status !== 'failed')
  if (sameName) return { existing: sameName.row, has: 'name' }
  if (document.ingestKey === null) return { ingestKey: null, nameKey: null }
  const firstKey = `${keyPrefix(context, domain)}:${document.contentHash}`
  const { ingestKey, duplicate } = await findIngestKey(rows, firstKey, isVisible)
  if (duplicate) return { existing: duplicate, has: 'text' }
  return { ingestKey, nameKey: document.nameKey && nameKeyOf(context, named, allWithName) }
}

/** Returns a document without its internal fields. */
export function toDocument(row: DocumentRow): Document {
  const {
    ingestKey: _,
    nameKey: __,
    jobId: ___,
    isVisibilityDecided: ____,
    createdAt: _____,
    chunking: ______,
    ingestReport: _______,
    ...document
  } = row
  return document
}

export function documentIdTaken(documentId: string): WbError {
  return new WbError('conflict', `document with id '${documentId}' already exists`)
}

export function chunkIdTaken(documentId: string): WbError {
  return new WbError(
    'conflict',
    `a record has the ID of a chunk of document '${documentId}'; use another document ID`,
  )
}

/**
 * Returns the prefix of unique keys. Includes the workspace, because knowledge base IDs are unique only in a workspace.
 */
function keyPrefix({ base }: BaseContext, domain: IngestDomain): string {
  return `${base.workspaceId}:${base.knowledgeBaseId}:${domain === undefined ? '' : JSON.stringify(domain)}`
}

async function findById(
  rows: RowStore,
  { base }: BaseContext,
  documentId: string,
): Promise<Stored<DocumentRow> | undefined> {
  return rows.get(tables.documents, [base.workspaceId, base.knowledgeBaseId, documentId])
}

/**
 * Returns the unique key for a text, and the visible document that has it. Skips the keys of hidden documents: the text
 * must be handled as if they did not exist.
 */
async function findIngestKey(
  rows: RowStore,
  firstKey: string,
  isVisible: (row: DocumentRow) => boolean,
): Promise<{ ingestKey: string; duplicate?: DocumentRow }> {
  for (let skipped = 0; ; skipped++) {
    const ingestKey = skipped === 0 ? firstKey : `${firstKey}:${skipped}`
    const [stored] = await rows.list(tables.documents, {
      index: 'byIngestKey',
      prefix: [ingestKey],
      limit: 1,
    })
    if (!stored) return { ingestKey }
    if (isVisible(stored.row)) return { ingestKey, duplicate: stored.row }
  }
}
