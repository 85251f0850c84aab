import { z } from 'zod'
import { member, needs } from './access.ts'
import {
  contentErrors,
  embeddingErrors,
  knowledgeBaseErrors,
  knowledgeBasePath,
  lenientJsonBody,
} from './content-routes.ts'
import { Document } from './documents.ts'
import { isoTimestamp } from './fields.ts'
import { limits } from './limits.ts'
import { pageOfItems, pageQuery } from './page.ts'
import { route } from './route.ts'

/** A deleted document that can be restored. */
export const TrashEntry = z
  .object({
    entryId: z.uuid(),
    deletionId: z.uuid(),
    deletedAt: isoTimestamp,
    expiresAt: isoTimestamp,
    document: Document,
  })
  .meta({ id: 'TrashEntry' })
export type TrashEntry = z.output<typeof TrashEntry>

const entries = z.object({ entryIds: z.array(z.uuid()).min(1).max(limits.documentsPerBulkDelete) })
const failures = z.array(z.object({ entryId: z.string(), code: z.string(), message: z.string() }))

const restoreErrors = [
  ...knowledgeBaseErrors,
  ...contentErrors,
  ...embeddingErrors,
  'document_not_found',
  'restore_conflict',
  'conflict',
  'policy_denied',
] as const

/** Deleted documents, which can be restored until they expire. */
export const trash = {
  list: route({
    method: 'GET',
    path: `${knowledgeBasePath}/documents/trash`,
    summary: 'List deleted documents',
    access: member('read:content'),
    query: pageQuery,
    replies: { 200: pageOfItems(TrashEntry) },
    errors: [...knowledgeBaseErrors, 'invalid_cursor', 'policy_principal_required'],
  }),
  restore: route({
    method: 'POST',
    path: `${knowledgeBasePath}/documents/trash/:entryId/restore`,
    summary: 'Restore a deleted document',
    access: needs('write:ingest'),
    replies: { 200: Document },
    errors: restoreErrors,
    audit: 'document.restore',
  }),
  bulkRestore: route({
    method: 'POST',
    path: `${knowledgeBasePath}/documents/trash/bulk-restore`,
    summary: 'Restore several deleted documents',
    access: needs('write:ingest'),
    body: { ...lenientJsonBody, schema: entries },
    replies: { 200: z.object({ restored: z.array(Document), failed: failures }) },
    errors: [...knowledgeBaseErrors, ...contentErrors],
    audit: 'document.restore',
  }),
  bulkDelete: route({
    method: 'POST',
    path: `${knowledgeBasePath}/documents/trash/bulk-delete`,
    summary: 'Delete documents from the trash',
    access: needs('write:ingest'),
    body: { ...lenientJsonBody, schema: entries },
    replies: { 200: z.object({ deleted: z.array(z.string()), failed: failures }) },
    errors: knowledgeBaseErrors,
    audit: 'document.delete',
  }),
}
