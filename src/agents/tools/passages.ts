import type { HitOfBase } from '../../contract/knowledge.ts'
import type { Documents } from '../../knowledge/documents.ts'
import type { DocumentRow } from '../../storage/tables.ts'
import { preview } from './result.ts'
import type { Passage } from './tool.ts'

/** Names, titles and descriptions, which may be longer than all that a model is given. */
const labelChars = 400

/** Where passages stand; what a document was made from is known of its row. */
export function passagesOf(
  documents: Pick<Documents, 'get'>,
  workspaceId: string,
  hits: readonly HitOfBase[],
): Promise<Passage[]> {
  const asked = new Map<string, Promise<DocumentRow | undefined>>()
  const rowOf = (knowledgeBaseId: string, documentId: string) => {
    const key = `${knowledgeBaseId}/${documentId}`
    const row = asked.get(key) ?? documents.get(workspaceId, knowledgeBaseId, documentId)
    // Records may name a document that is elsewhere, or gone.
    const known = row.catch(() => undefined)
    asked.set(key, known)
    return known
  }
  return Promise.all(
    hits.map(async ({ id, knowledgeBaseId, payload = {} }) => {
      const documentId = textOf(payload.documentId)
      const row = documentId === null ? undefined : await rowOf(knowledgeBaseId, documentId)
      const { chunkIndex, title, page } = payload
      return {
        knowledgeBaseId,
        attachmentId: null,
        documentId,
        chunkId: id,
        chunkIndex: typeof chunkIndex === 'number' ? chunkIndex : null,
        title: label(textOf(title)),
        sourceFilename: label(row?.sourceFilename ?? null),
        page: pageOf(page),
      }
    }),
  )
}

/** A text of a record, in the length that a model is given. */
export function label(text: string | null): string | null {
  return text === null ? null : preview(text, labelChars)
}

/** A field of a record, which may hold anything, where it is a text. */
export function textOf(value: unknown): string | null {
  return typeof value === 'string' ? value : null
}

/** Where whoever ingested said on which page a passage stands. */
export function pageOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isInteger(value) && value > 0 ? value : null
}
