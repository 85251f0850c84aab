import * as Args from '@oclif/core/args'
import { WbError } from '../../contract/errors.ts'
import { type Job, jobs } from '../../contract/jobs.ts'
import { UsageError } from '../errors.ts'
import { isId } from '../id.ts'
import type { JobNames } from '../jobs/job-names.ts'
import type { Field } from '../terminal/output.ts'
import { type ResolveContext, resolveWorkspace } from './resolve.ts'

/** ID of a job; the newest job if omitted. */
export const jobArg = Args.string({ description: 'ID of the job [the newest]' })

/**
 * @throws UsageError             when the argument is not an ID
 * @throws WbError job_not_found  when the job does not exist
 */
export async function findJob(context: ResolveContext, wanted: string | undefined): Promise<Job> {
  const { client } = context
  if (wanted !== undefined && !isId(wanted))
    throw new UsageError(`"${wanted}" is not the ID of a job`, ['wb jobs list'])
  const { workspaceId } = await resolveWorkspace(context)
  if (wanted !== undefined) return client.call(jobs.show, { params: { workspaceId, jobId: wanted } })
  const { items } = await client.call(jobs.list, { params: { workspaceId }, query: { limit: 1 } })
  if (items[0]) return items[0]
  throw new WbError('job_not_found', 'there are no jobs yet', {
    next: ['wb kb ingest handbook ./docs --async'],
  })
}

/** Returns the number of processed and total items: "4/12". */
export function progressOf({ processed, total }: Job): string {
  return total === null ? '' : `${processed}/${total}`
}

/** Returns the fields of a job to show. */
export function jobFields(job: Job, { document, base }: JobNames): Record<string, Field> {
  return {
    id: job.jobId,
    kind: job.kind,
    status: job.status,
    chunks: progressOf(job),
    error: job.errorMessage,
    document,
    'document id': job.documentId,
    'knowledge base': base,
    created: { time: job.createdAt },
    updated: { time: job.updatedAt },
  }
}
