import { groupBy } from '../../base/group-by.ts'
import { newId } from '../../base/id.ts'
import { shellWord } from '../../base/shell-word.ts'
import type { Client } from '../../client/client.ts'
import { type Document, documents } from '../../contract/documents.ts'
import { WbError } from '../../contract/errors.ts'
import { limits } from '../../contract/limits.ts'
import type { ReplyBody } from '../../contract/route.ts'
import type { TrashEntry } from '../../contract/trash.ts'
import type { ResolveContext } from '../find/resolve.ts'
import { findDocumentToDelete } from '../passages/last-search.ts'
import type { Output } from '../terminal/output.ts'
import { findInTrash, listTrash, purgeEntries } from './trash.ts'

type BulkDeleteResult = ReplyBody<typeof documents.bulkDelete>

/**
 * Deletes documents of one or more knowledge bases, in batches. Continues if a document cannot be deleted.
 *
 * @param permanently  true to skip the trash; otherwise, they can be restored together
 */
export async function deleteDocuments(
  client: Client,
  all: readonly Document[],
  { permanently = false }: { permanently?: boolean } = {},
): Promise<BulkDeleteResult> {
  const result: BulkDeleteResult = { deleted: [], failed: [] }
  const deletionId = newId()
  for (const documentsOfBase of groupBy(all, ({ knowledgeBaseId }) => knowledgeBaseId).values())
    for (let start = 0; start < documentsOfBase.length; start += limits.documentsPerBulkDelete) {
      const { workspaceId, knowledgeBaseId } = documentsOfBase[start]!
      const documentIds = documentsOfBase
        .slice(start, start + limits.documentsPerBulkDelete)
        .map(({ documentId }) => documentId)
      const { deleted, failed } = await client.call(documents.bulkDelete, {
        params: { workspaceId, knowledgeBaseId },
        body: { documentIds, permanently, deletionId },
      })
      result.deleted.push(...deleted)
      result.failed.push(...failed)
    }
  return result
}

export interface DeletionFlags {
  readonly kb?: string | undefined
  readonly permanently: boolean
  readonly yes: boolean
}

/** Suggests the command that restores the documents that were deleted last, if they are in the trash. */
export function suggestRestore(
  output: Output,
  { permanently, kb }: Pick<DeletionFlags, 'kb' | 'permanently'>,
): void {
  if (permanently || output.json) return
  output.suggest(`wb documents restore${kb === undefined ? '' : ` --kb ${shellWord(kb)}`}`)
}

/** Documents to delete, and entries of the trash to delete permanently. */
export interface DeletionTargets {
  readonly live: readonly Document[]
  readonly entries: readonly TrashEntry[]
}

/**
 * Finds documents by ID, file name, source ID or title.
 *
 * @param options.permanently  true to also find documents that were deleted before
 * @throws WbError document_not_found  no document matches a name
 * @throws UsageError                  several documents match a name
 */
export async function findDeletionTargets(
  context: ResolveContext,
  names: readonly string[],
  { kb, permanently }: { kb: string | undefined; permanently: boolean },
): Promise<DeletionTargets> {
  const live: Document[] = []
  const entries: TrashEntry[] = []
  for (const name of new Set(names))
    try {
      live.push(await findDocumentToDelete(context, name, kb))
    } catch (error) {
      if (!permanently || !(error instanceof WbError) || error.code !== 'document_not_found') throw error
      const entry = findInTrash(await listTrash(context, kb), name)
      if (!entry) throw error
      entries.push(entry)
    }
  return { live, entries }
}

/** Deletes documents, and entries of the trash permanently. Continues if one cannot be deleted. */
export async function deleteTargets(
  client: Client,
  { live, entries }: DeletionTargets,
  options: { permanently: boolean },
): Promise<BulkDeleteResult> {
  const outcome = await deleteDocuments(client, live, options)
  const purged = await purgeEntries(client, entries)
  const documentOf = new Map(entries.map(({ entryId, document }) => [entryId, document.documentId]))
  const failures = purged.failed.map(({ entryId, code, message }) => ({
    documentId: documentOf.get(entryId)!,
    code,
    message,
  }))
  return {
    deleted: [...outcome.deleted, ...purged.changed.map(entryId => documentOf.get(entryId)!)],
    failed: [...outcome.failed, ...failures],
  }
}
