import { z } from 'zod'
import { member, needs } from './access.ts'
import { isoTimestamp } from './fields.ts'
import { pageOfItems, pageQuery } from './page.ts'
import { route } from './route.ts'

export const Job = z
  .object({
    workspaceId: z.uuid(),
    jobId: z.uuid(),
    kind: z.enum(['ingest', 'reindex']).meta({
      description: '`ingest` for a document, `reindex` for a knowledge base',
    }),
    knowledgeBaseId: z.uuid().nullable(),
    documentId: z.uuid().nullable(),
    status: z.enum(['pending', 'running', 'succeeded', 'failed']),
    processed: z.int(),
    total: z.int().nullable().meta({
      description:
        'number of chunks; null until it is known. A job that also changes the embedding service counts each chunk twice.',
    }),
    result: z.object({ chunks: z.int() }).nullable(),
    errorMessage: z.string().nullable(),
    createdAt: isoTimestamp,
    updatedAt: isoTimestamp.meta({ description: 'time of the last change; increases with each change' }),
  })
  .meta({ id: 'Job' })
export type Job = z.output<typeof Job>

const JobDone = z.object({ status: z.enum(['succeeded', 'failed']) }).meta({ id: 'JobDone' })

const jobsPath = '/api/v1/workspaces/:workspaceId/jobs'
const jobPath = `${jobsPath}/:jobId` as const
const jobErrors = ['workspace_not_found', 'job_not_found', 'policy_principal_required'] as const

export const jobs = {
  list: route({
    method: 'GET',
    path: jobsPath,
    summary: 'List jobs',
    access: member('read:content'),
    query: pageQuery,
    replies: { 200: pageOfItems(Job) },
    errors: ['workspace_not_found', 'invalid_cursor', 'policy_principal_required'],
  }),
  show: route({
    method: 'GET',
    path: jobPath,
    summary: 'Show a job',
    access: member('read:content'),
    replies: { 200: Job },
    errors: jobErrors,
  }),
  cancel: route({
    method: 'POST',
    path: `${jobPath}/cancel`,
    summary: 'Cancel a job',
    description:
      'Sets the status of a job and its document to `failed`, with the message `cancelled`. A job that has already ended is returned unchanged.',
    access: needs('write:ingest'),
    replies: { 200: Job },
    errors: jobErrors,
  }),
  events: route({
    method: 'GET',
    path: `${jobPath}/events`,
    summary: 'Follow a job',
    description:
      'Streams the event `job` immediately and after each change. The ID of the event is the `updatedAt` of the job. The last event is `done`. `Last-Event-ID` skips older changes, but the last change is always sent. If the stream ends without `done`, open it again.',
    access: member('read:content'),
    replies: { 200: 'text/event-stream' },
    events: { job: Job, done: JobDone },
    errors: jobErrors,
  }),
}
