import type { KnowledgeBaseHit } from '../../contract/knowledge.ts'
import { placePayloadKeys } from '../../contract/payload-keys.ts'
import type { ContentCaller, Documents } from '../../knowledge/documents.ts'
import type { DocumentRow } from '../../storage/tables.ts'
import type { ToolPassage } from './tool.ts'
import { previewText } from './tool-result.ts'

/** Maximum length of names, titles and descriptions that are sent to a model. */
const labelCharsMax = 400

/** Returns the passages of search hits with their sources. Reads the file names from the document rows. */
export function findPassageSources(
  documents: Pick<Documents, 'findForHit'>,
  { workspaceId, caller }: { workspaceId: string; caller: ContentCaller },
  hits: readonly KnowledgeBaseHit[],
): Promise<ToolPassage[]> {
  const requestedRows = new Map<string, Promise<DocumentRow | undefined>>()
  const rowOf = (knowledgeBaseId: string, documentId: string) => {
    const key = `${knowledgeBaseId}/${documentId}`
    const documentKey = { workspaceId, knowledgeBaseId, documentId }
    const row = requestedRows.get(key) ?? documents.findForHit(documentKey, caller)
    // The knowledge base can be deleted in the meantime.
    const rowOrUndefined = row.catch(() => undefined)
    requestedRows.set(key, rowOrUndefined)
    return rowOrUndefined
  }
  return Promise.all(
    hits.map(async ({ id, knowledgeBaseId, payload = {} }) => {
      const documentId = textField(payload.documentId)
      const row = documentId === null ? undefined : await rowOf(knowledgeBaseId, documentId)
      const { chunkIndex, title } = payload
      return {
        knowledgeBaseId,
        attachmentId: null,
        documentId,
        chunkId: id,
        chunkIndex: typeof chunkIndex === 'number' ? chunkIndex : null,
        title: truncateLabel(textField(title)),
        sourceFilename: truncateLabel(row?.sourceFilename ?? null),
        page: pageOf(payload),
      }
    }),
  )
}

/** Truncates a label, such as a title, that is sent to a model. */
export function truncateLabel(text: string | null): string | null {
  return text === null ? null : previewText(text, labelCharsMax)
}

/** Returns a field of a record if it is a string; null otherwise. */
export function textField(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

/** Returns the page of a passage, from 1: that of the file, or the field `page` of a record; null if it has none. */
export function pageOf(payload: Readonly<Record<string, unknown>>): number | null {
  const value = payload[placePayloadKeys.page] ?? payload.page
  return typeof value === 'number' && Number.isInteger(value) && value > 0 ? value : null
}
