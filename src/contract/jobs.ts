import { z } from 'zod'
import { member, needs } from './access.ts'
import { isoTimestamp } from './fields.ts'
import { pageOfItems, pageQuery } from './page.ts'
import { route } from './route.ts'

export const Job = z
  .object({
    workspaceId: z.uuid(),
    jobId: z.uuid(),
    kind: z.literal('ingest'),
    knowledgeBaseId: z.uuid().nullable(),
    documentId: z.uuid().nullable(),
    status: z.enum(['pending', 'running', 'succeeded', 'failed']),
    processed: z.int(),
    total: z.int().nullable().meta({ description: 'null until the text is cut into chunks' }),
    result: z.object({ chunks: z.int() }).nullable(),
    errorMessage: z.string().nullable(),
    createdAt: isoTimestamp,
    updatedAt: isoTimestamp.meta({ description: 'strictly increases with each change' }),
  })
  .meta({ id: 'Job' })
export type Job = z.output<typeof Job>

const JobDone = z.object({ status: z.enum(['succeeded', 'failed']) }).meta({ id: 'JobDone' })

const list = '/api/v1/workspaces/:workspaceId/jobs'
const one = `${list}/:jobId` as const
const found = ['workspace_not_found', 'job_not_found'] as const

export const jobs = {
  list: route({
    method: 'GET',
    path: list,
    summary: 'List jobs',
    access: member('read:content'),
    query: pageQuery,
    replies: { 200: pageOfItems(Job) },
    errors: ['workspace_not_found', 'invalid_cursor'],
  }),
  show: route({
    method: 'GET',
    path: one,
    summary: 'Show a job',
    access: member('read:content'),
    replies: { 200: Job },
    errors: found,
  }),
  cancel: route({
    method: 'POST',
    path: `${one}/cancel`,
    summary: 'Cancel a job',
    description:
      'Ends a job and its document as `failed` with the message `cancelled`. A job that has ended is returned unchanged.',
    access: needs('write:ingest'),
    replies: { 200: Job },
    errors: found,
  }),
  events: route({
    method: 'GET',
    path: `${one}/events`,
    summary: 'Follow a job',
    description:
      'Streams the event `job` at once and after each change, with `updatedAt` of the job as its ID. The last event is `done`. `Last-Event-ID` skips the changes that you have seen, except the last one. If the stream ends without `done`, open it again.',
    access: member('read:content'),
    replies: { 200: 'text/event-stream' },
    events: { job: Job, done: JobDone },
    errors: found,
  }),
}
