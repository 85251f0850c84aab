import { type PolicyDocument, policyPayload } from '../access/policy/document-fields.ts'
import { WbError } from '../contract/errors.ts'
import {
  gapPayloadKeys,
  ownerPayloadKey,
  placesPayloadKey,
  reservedPayloadKeys,
  sourcePayloadKey,
  startPayloadKey,
  statusPayloadKey,
} from '../contract/fields.ts'
import { type FolderDescription, folderOf } from '../contract/folder-description.ts'
import { sectionPayloadKey, tableHeadsPayloadKey } from '../contract/payload-keys.ts'
import type { Payload, RecordView } from '../storage/content.ts'
import type { KnowledgeBaseRow } from '../storage/tables.ts'

/** Returns the title of a record or document: the field `title` of its payload, if it is a string. */
export function titleOfPayload(payload: Payload | undefined): string | null {
  return typeof payload?.title === 'string' ? payload.title : null
}

/** The description of the folder of a chunk, the headings above its new text, and the column headers of the table in which it starts. */
export interface ChunkContext {
  readonly folder?: string | undefined
  readonly section?: string | undefined
  readonly tableHeads?: string | undefined
}

/**
 * Returns the lines that are embedded between the title and the text of a chunk: the description of its folder, its section
 * without the title, and the column headers of its table. Null if there are none.
 */
export function contextOfChunk(
  title: string | null,
  { folder, section, tableHeads }: ChunkContext,
): string | null {
  const lines = [folder, sectionBelow(title, section), tableHeads].filter(line => line)
  return lines.length === 0 ? null : lines.join('\n')
}

/**
 * Returns the context of a stored chunk: see {@link contextOfChunk}.
 *
 * @param folder  description of its folder
 */
export function contextOfPayload(payload: Payload, folder?: string): string | null {
  const { [sectionPayloadKey]: section, [tableHeadsPayloadKey]: tableHeads } = payload
  return contextOfChunk(titleOfPayload(payload), {
    folder,
    section: typeof section === 'string' ? section : undefined,
    tableHeads: typeof tableHeads === 'string' ? tableHeads : undefined,
  })
}

/** Removes the title of the document from the start of a section, because many documents start with it as a heading. */
function sectionBelow(title: string | null, section: string | undefined): string | undefined {
  if (title === null || section === undefined) return section
  if (section === title) return undefined
  const prefix = `${title} > `
  return section.startsWith(prefix) ? section.slice(prefix.length) : section
}

/** Returns the deepest described folder that contains the document of a record. */
export function folderOfRecord(
  { folders = [] }: Pick<KnowledgeBaseRow, 'folders'>,
  { documentId, payload }: Pick<RecordView, 'documentId' | 'payload'>,
): FolderDescription | undefined {
  const { [sourcePayloadKey]: filename } = payload
  return documentId === null ? undefined : folderOf(folders, typeof filename === 'string' ? filename : null)
}

/** Maximum size of the fields that the chunks of a document inherit, in bytes, over all of its chunks. */
const inheritedBytesMax = 16 * 1024 * 1024

/**
 * Rejects metadata that is too large for the number of chunks, because each chunk stores a copy of it.
 *
 * @throws invalid_metadata
 */
export function requireInheritedSize(document: PolicyDocument, chunks: number): void {
  if (inheritedBytes(document) * chunks <= inheritedBytesMax) return
  throw new WbError(
    'invalid_metadata',
    `metadata: each of the ${chunks} chunks stores a copy of metadata and visibleTo, which together must be at most ${Math.floor(inheritedBytesMax / chunks)} bytes`,
  )
}

/** Returns the size of the fields that each chunk of a document inherits, in bytes. */
export function inheritedBytes(document: PolicyDocument): number {
  return Buffer.byteLength(JSON.stringify(policyPayload(document)))
}

const inheritedKeys: ReadonlySet<string> = new Set([
  'visible_to',
  ownerPayloadKey,
  sourcePayloadKey,
  statusPayloadKey,
])

/**
 * Returns the new payload of a chunk after its document has changed. Keeps the fields of the chunk, and replaces the
 * inherited ones.
 */
export function updateInheritedFields(payload: Payload, document: PolicyDocument): Payload {
  const chunkFields = Object.entries(payload).filter(
    ([key]) => !inheritedKeys.has(key) && reservedPayloadKeys.has(key),
  )
  return { ...policyPayload(document), ...Object.fromEntries(chunkFields) }
}

/** Returns the payload as the API returns it: without internal fields, and with the text as `chunkText`. */
export function toApiPayload({ payload, text }: RecordView): Payload {
  const {
    [ownerPayloadKey]: _,
    [sourcePayloadKey]: __,
    [statusPayloadKey]: ___,
    [startPayloadKey]: ____,
    [placesPayloadKey]: _____,
    [gapPayloadKeys.before]: ______,
    [gapPayloadKeys.after]: _______,
    ...fields
  } = payload
  return text === null ? fields : { ...fields, chunkText: text }
}
