import { type PolicyDocument, policyPayload } from '../access/policy/document-fields.ts'
import {
  ownerPayloadKey,
  reservedPayloadKeys,
  sourcePayloadKey,
  statusPayloadKey,
} from '../contract/fields.ts'
import type { Payload, RecordView } from '../storage/content.ts'

/** Returns the title of a record or document: the field `title` of its payload, if it is a string. */
export function titleOfPayload(payload: Payload | undefined): string | null {
  return typeof payload?.title === 'string' ? payload.title : null
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
  const { [ownerPayloadKey]: _, [sourcePayloadKey]: __, [statusPayloadKey]: ___, ...fields } = payload
  return text === null ? fields : { ...fields, chunkText: text }
}
