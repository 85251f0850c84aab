import type { Document } from '../../contract/documents.ts'
import { ownerPayloadKey, sourcePayloadKey, statusPayloadKey } from '../../contract/fields.ts'
import { createMatcher } from '../../storage/filter.ts'
import type { Visibility } from '../../storage/visibility.ts'

/** The fields of a document that policies can refer to. */
export type PolicyDocument = Pick<
  Document,
  | 'metadata'
  | 'visibleTo'
  | 'ownerPrincipalId'
  | 'sourceFilename'
  | 'status'
  | 'documentId'
  | 'knowledgeBaseId'
>

/** Returns the payload fields to which policies apply. The chunks of a document have the same fields. */
export function policyPayload(document: PolicyDocument): Record<string, unknown> {
  const { metadata, visibleTo, ownerPrincipalId, sourceFilename, status, documentId, knowledgeBaseId } =
    document
  return {
    ...metadata,
    documentId,
    knowledgeBaseId,
    ...(!Object.hasOwn(metadata, 'status') && { [statusPayloadKey]: status }),
    ...(visibleTo && { visible_to: visibleTo }),
    ...(ownerPrincipalId !== null && { [ownerPayloadKey]: ownerPrincipalId }),
    ...(sourceFilename !== null && { [sourcePayloadKey]: sourceFilename }),
  }
}

/** Returns a function that is true for the documents that a caller may see. */
export function documentMatcher({ filter }: Visibility): (document: PolicyDocument) => boolean {
  const matches = createMatcher(filter)
  return document => matches(policyPayload(document))
}
