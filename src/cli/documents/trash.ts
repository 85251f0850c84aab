import { groupBy } from '../../base/group-by.ts'
import type { Client } from '../../client/client.ts'
import type { Document } from '../../contract/documents.ts'
import { limits } from '../../contract/limits.ts'
import { type TrashEntry, trash } from '../../contract/trash.ts'
import { UsageError } from '../errors.ts'
import { documentName } from '../fields/resources.ts'
import {
  listKnowledgeBases,
  type ResolveContext,
  resolveKnowledgeBase,
  resolveWorkspace,
} from '../find/resolve.ts'

/** Documents that were changed in the trash, and the failures. */
interface TrashChange<T> {
  readonly changed: T[]
  readonly failed: { entryId: string; code: string; message: string }[]
}

/**
 * Lists the deleted documents of a knowledge base, or of all knowledge bases of the workspace. The last deleted documents of each
 * knowledge base are at the end.
 */
export async function listTrash(context: ResolveContext, base?: string): Promise<TrashEntry[]> {
  const bases =
    base === undefined
      ? await listKnowledgeBases(context.client, (await resolveWorkspace(context)).workspaceId)
      : [await resolveKnowledgeBase(context, base)]
  const entries: TrashEntry[] = []
  for (const { workspaceId, knowledgeBaseId } of bases) {
    const params = { workspaceId, knowledgeBaseId }
    for await (const entry of context.client.items(trash.list, { params })) entries.push(entry)
  }
  return entries
}

/**
 * Finds a deleted document by ID, file name, source ID or title. If it was deleted several times, returns the last entry.
 *
 * @throws UsageError  several deleted documents match
 */
export function findInTrash(entries: readonly TrashEntry[], nameOrId: string): TrashEntry | undefined {
  const matches = entries.filter(({ document }) =>
    [document.documentId, document.sourceFilename, document.sourceDocId, document.metadata.title].includes(
      nameOrId,
    ),
  )
  const ids = new Set(matches.map(({ document }) => document.documentId))
  if (ids.size > 1)
    throw new UsageError(
      `${ids.size} deleted documents are named "${nameOrId}"; use an ID`,
      matches.map(({ document }) => `${document.documentId}  ${documentName(document)}`),
    )
  return matches.at(-1)
}

/** Returns the documents that were deleted last, together. */
export function selectLastDeletion(entries: readonly TrashEntry[]): TrashEntry[] {
  const last = entries.reduce<TrashEntry | undefined>(
    (latest, entry) => (latest && latest.deletedAt > entry.deletedAt ? latest : entry),
    undefined,
  )
  return entries.filter(({ deletionId }) => deletionId === last?.deletionId)
}

/** Restores deleted documents, in batches. Continues if a document cannot be restored. */
export function restoreEntries(
  client: Client,
  entries: readonly TrashEntry[],
): Promise<TrashChange<Document>> {
  return changeInBatches(entries, async (params, entryIds) => {
    const { restored, failed } = await client.call(trash.bulkRestore, { params, body: { entryIds } })
    return { changed: restored, failed }
  })
}

/** Permanently deletes documents in the trash, in batches. Continues if one cannot be deleted. */
export function purgeEntries(client: Client, entries: readonly TrashEntry[]): Promise<TrashChange<string>> {
  return changeInBatches(entries, async (params, entryIds) => {
    const { deleted, failed } = await client.call(trash.bulkDelete, { params, body: { entryIds } })
    return { changed: deleted, failed }
  })
}

async function changeInBatches<T>(
  entries: readonly TrashEntry[],
  change: (
    params: { workspaceId: string; knowledgeBaseId: string },
    entryIds: string[],
  ) => Promise<TrashChange<T>>,
): Promise<TrashChange<T>> {
  const result: TrashChange<T> = { changed: [], failed: [] }
  for (const group of groupBy(entries, ({ document }) => document.knowledgeBaseId).values())
    for (let start = 0; start < group.length; start += limits.documentsPerBulkDelete) {
      const { workspaceId, knowledgeBaseId } = group[start]!.document
      const batch = group.slice(start, start + limits.documentsPerBulkDelete)
      const entryIds = batch.map(({ entryId }) => entryId)
      const { changed, failed } = await change({ workspaceId, knowledgeBaseId }, entryIds)
      result.changed.push(...changed)
      result.failed.push(...failed)
    }
  return result
}
