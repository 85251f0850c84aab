import type { Document } from '../contract/documents.ts'
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

/** The payload of a chunk after its document has changed. */
export function stampedPayload(
  payload: Payload,
  { before, after }: { before: Stamp; after: Stamp },
): Payload {
  const dropped = documentPayload(before)
  const kept = Object.fromEntries(Object.entries(payload).filter(([key]) => !Object.hasOwn(dropped, key)))
  return { ...documentPayload(after), ...kept }
}

/** The payload as the wire shows it: the text stands in it under its reserved key. */
export function shownPayload({ payload, text }: RecordView): Payload {
  return text === null ? payload : { ...payload, chunkText: text }
}
