import type { Client } from '../../client/client.ts'
import { type Document, documents } from '../../contract/documents.ts'
import { limits } from '../../contract/limits.ts'
import type { ReplyBody } from '../../contract/route.ts'

type BulkDeleteResult = ReplyBody<typeof documents.bulkDelete>

/** Deletes documents of one or more knowledge bases, in batches. Continues if a document cannot be deleted. */
export async function deleteDocuments(client: Client, all: readonly Document[]): Promise<BulkDeleteResult> {
  const result: BulkDeleteResult = { deleted: [], failed: [] }
  for (const documentsOfBase of groupByBase(all))
    for (let start = 0; start < documentsOfBase.length; start += limits.documentsPerBulkDelete) {
      const { workspaceId, knowledgeBaseId } = documentsOfBase[start]!
      const documentIds = documentsOfBase
        .slice(start, start + limits.documentsPerBulkDelete)
        .map(({ documentId }) => documentId)
      const { deleted, failed } = await client.call(documents.bulkDelete, {
        params: { workspaceId, knowledgeBaseId },
        body: { documentIds },
      })
      result.deleted.push(...deleted)
      result.failed.push(...failed)
    }
  return result
}

function groupByBase(all: readonly Document[]): Iterable<Document[]> {
  const bases = new Map<string, Document[]>()
  for (const document of all) {
    const key = `${document.workspaceId}/${document.knowledgeBaseId}`
    const group = bases.get(key)
    if (group) group.push(document)
    else bases.set(key, [document])
  }
  return bases.values()
}
