import type { Document } from '../contract/documents.ts'
import { reservedPayloadKeys } from '../contract/fields.ts'
import type { Payload, RecordView } from '../storage/content.ts'

/** The title of a record or document: text under `title`. */
export function titleOf(payload: Payload | undefined): string | null {
  return typeof payload?.title === 'string' ? payload.title : null
}

type Stamp = Pick<Document, 'metadata' | 'visibleTo'>

/** What the payload of a chunk has of its document: metadata, and who may see it. */
export function documentPayload({ metadata, visibleTo }: Stamp): Payload {
  return visibleTo ? { ...metadata, visible_to: visibleTo } : { ...metadata }
}

/** The payload of a chunk after its document has changed: of what it held, only what ingest says of each chunk stays. */
export function stampedPayload(payload: Payload, document: Stamp): Payload {
  const own = Object.entries(payload).filter(([key]) => key !== 'visible_to' && reservedPayloadKeys.has(key))
  return { ...documentPayload(document), ...Object.fromEntries(own) }
}

/** The payload as the wire shows it: the text stands in it under its reserved key. */
export function shownPayload({ payload, text }: RecordView): Payload {
  return text === null ? payload : { ...payload, chunkText: text }
}
