import type { KnowledgeBaseHit } from '../../contract/knowledge.ts'
import type { Documents } from '../../knowledge/documents.ts'
import type { DocumentRow } from '../../storage/tables.ts'
import type { ToolPassage } from './tool.ts'
import { previewText } from './tool-result.ts'

/** Maximum length of names, titles and descriptions for a model. */
const labelChars = 400

/** Returns the sources of passages. The file name comes from the document's row. */
export function findPassageSources(
  documents: Pick<Documents, 'get'>,
  workspaceId: string,
  hits: readonly KnowledgeBaseHit[],
): Promise<ToolPassage[]> {
  const asked = new Map<string, Promise<DocumentRow | undefined>>()
  const rowOf = (knowledgeBaseId: string, documentId: string) => {
    const key = `${knowledgeBaseId}/${documentId}`
    const row = asked.get(key) ?? documents.get(workspaceId, knowledgeBaseId, documentId)
    // Records can refer to a document in another place, or to a deleted one.
    const known = row.catch(() => undefined)
    asked.set(key, known)
    return known
  }
  return Promise.all(
    hits.map(async ({ id, knowledgeBaseId, payload = {} }) => {
      const documentId = textField(payload.documentId)
      const row = documentId === null ? undefined : await rowOf(knowledgeBaseId, documentId)
      const { chunkIndex, title, page } = payload
      return {
        knowledgeBaseId,
        attachmentId: null,
        documentId,
        chunkId: id,
        chunkIndex: typeof chunkIndex === 'number' ? chunkIndex : null,
        title: modelLabel(textField(title)),
        sourceFilename: modelLabel(row?.sourceFilename ?? null),
        page: pageNumberField(page),
      }
    }),
  )
}

/** Truncates a text of a record to the length for a model. */
export function modelLabel(text: string | null): string | null {
  return text === null ? null : previewText(text, labelChars)
}

/** Returns a field of a record if it is text; null otherwise. */
export function textField(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

/** Returns the page number in a record, from 1; null if it has no valid one. */
export function pageNumberField(value: unknown): number | null {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 ? value : null
}
