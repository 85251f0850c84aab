import type { Document } from '../../contract/documents.ts'
import { ownerPayloadKey, sourcePayloadKey, statusPayloadKey } from '../../contract/fields.ts'
import { createMatcher } from '../../storage/filter.ts'
import type { Visibility } from '../../storage/visibility.ts'
import type { PolicyRow } from './evaluate.ts'

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

type DocumentIds = Pick<PolicyDocument, 'documentId' | 'knowledgeBaseId'>

/** Returns the columns of a document for the evaluation of a policy. A document of a test case has no IDs. */
export function policyColumns(
  document: Omit<PolicyDocument, keyof DocumentIds> & Partial<DocumentIds>,
): PolicyRow {
  const { owner_id, owner_principal_id, source_filename, chunkIndex, ...fields } = document.metadata
  const { visibleTo, ownerPrincipalId, sourceFilename, status, documentId, knowledgeBaseId } = document
  return {
    status,
    ...fields,
    documentId,
    knowledgeBaseId,
    ...(visibleTo && { visible_to: visibleTo }),
    ...(ownerPrincipalId !== null && { owner_id: ownerPrincipalId, owner_principal_id: ownerPrincipalId }),
    ...(sourceFilename !== null && { source_filename: sourceFilename }),
  }
}

/** Returns a function that is true for the documents that a caller may see. */
export function documentMatcher({ filter }: Visibility): (document: PolicyDocument) => boolean {
  const matches = createMatcher(filter)
  return document => matches(policyPayload(document))
}
