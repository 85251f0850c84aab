import * as Args from '@oclif/core/args'
import { WbError } from '../../contract/errors.ts'
import { type Job, jobs } from '../../contract/jobs.ts'
import { UsageError } from '../errors.ts'
import { isId } from '../id.ts'
import type { Field } from '../terminal/output.ts'
import type { JobNames } from './job-names.ts'
import { type ResolveContext, resolveWorkspace } from './resolve.ts'

/** Argument for a job. Without it, the command uses the newest job. */
export const jobArg = Args.string({ description: 'job ID [the newest job]' })

/**
 * Finds a job by ID. Without `id`, returns the newest job.
 *
 * @throws UsageError             `id` is not an ID
 * @throws WbError job_not_found  the job does not exist
 */
export async function findJob(context: ResolveContext, id: string | undefined): Promise<Job> {
  const { client } = context
  if (id !== undefined && !isId(id)) throw new UsageError(`"${id}" is not a job ID`, ['wb jobs list'])
  const { workspaceId } = await resolveWorkspace(context)
  if (id !== undefined) return client.call(jobs.show, { params: { workspaceId, jobId: id } })
  const { items } = await client.call(jobs.list, { params: { workspaceId }, query: { limit: 1 } })
  if (items[0]) return items[0]
  throw new WbError('job_not_found', 'there are no jobs yet', {
    next: ['wb kb ingest handbook ./docs --async'],
  })
}

/** Returns the number of processed items and of all items: "4/12"; empty if the total is unknown. */
export function formatJobProgress({ processed, total }: Job): string {
  return total === null ? '' : `${processed}/${total}`
}

/** Returns the fields of a job to show. */
export function jobFields(job: Job, { document, base }: JobNames): Record<string, Field> {
  return {
    id: job.jobId,
    kind: job.kind,
    status: job.status,
    chunks: formatJobProgress(job),
    error: job.errorMessage,
    document,
    'document id': job.documentId,
    'knowledge base': base,
    created: { time: job.createdAt },
    updated: { time: job.updatedAt },
  }
}
