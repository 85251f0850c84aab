import type { Document } from '../contract/documents.ts'
import { reservedPayloadKeys } from '../contract/fields.ts'
import type { Payload, RecordView } from '../storage/content.ts'

/** Returns the title of a record or document: the field `title` of its payload, if it is a string. */
export function titleOfPayload(payload: Payload | undefined): string | null {
  return typeof payload?.title === 'string' ? payload.title : null
}

type InheritedFields = Pick<Document, 'metadata' | 'visibleTo'>

/** Returns the fields that chunks inherit from their document: metadata and visibility. */
export function documentPayload({ metadata, visibleTo }: InheritedFields): Payload {
  return visibleTo ? { ...metadata, visible_to: visibleTo } : { ...metadata }
}

/**
 * Returns the new payload of a chunk after its document has changed. Keeps the fields of the chunk, and replaces the
 * inherited ones.
 */
export function updateInheritedFields(payload: Payload, document: InheritedFields): Payload {
  const chunkFields = Object.entries(payload).filter(
    ([key]) => key !== 'visible_to' && reservedPayloadKeys.has(key),
  )
  return { ...documentPayload(document), ...Object.fromEntries(chunkFields) }
}

/** Returns the payload as the API returns it, with the text as `chunkText`. */
export function toApiPayload({ payload, text }: RecordView): Payload {
  return text === null ? payload : { ...payload, chunkText: text }
}
