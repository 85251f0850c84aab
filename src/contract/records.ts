import { z } from 'zod'
import { needs } from './access.ts'
import {
  contentErrors,
  embeddingErrors,
  knowledgeBaseErrors,
  knowledgeBasePath,
  lenientJsonBody,
} from './content-routes.ts'
import { boundedText, payload, vector, visibleTo } from './fields.ts'
import { limits } from './limits.ts'
import { route } from './route.ts'

const RecordInput = z
  .object({
    id: z.string().min(1),
    vector: vector.optional(),
    text: boundedText(limits.recordTextChars).optional(),
    payload: payload.optional(),
    visibleTo: visibleTo.nullable().optional(),
  })
  .refine(
    record => (record.text === undefined) !== (record.vector === undefined),
    'send exactly one of text and vector',
  )

const Upsert = z.object({ records: z.array(RecordInput).min(1).max(limits.recordsPerUpsert) })
export type Upsert = z.output<typeof Upsert>

export const records = {
  upsert: route({
    method: 'POST',
    path: `${knowledgeBasePath}/records`,
    summary: 'Store records',
    access: needs('write:ingest'),
    body: { ...lenientJsonBody, schema: Upsert },
    replies: { 200: z.object({ upserted: z.int() }) },
    errors: [
      ...knowledgeBaseErrors,
      ...contentErrors,
      ...embeddingErrors,
      'dimension_mismatch',
      'vector_collection_not_allowed',
      'invalid_metadata',
      'invalid_visible_to',
      'conflict',
      'policy_denied',
    ],
  }),
  delete: route({
    method: 'DELETE',
    path: `${knowledgeBasePath}/records/:recordId`,
    summary: 'Delete a record',
    access: needs('write:ingest'),
    replies: { 200: z.object({ deleted: z.boolean() }) },
    errors: [...knowledgeBaseErrors, ...contentErrors, 'conflict'],
  }),
}
