import * as Args from '@oclif/core/args'
import type { Client } from '../../client/client.ts'
import { WbError } from '../../contract/errors.ts'
import { type Job, jobs } from '../../contract/jobs.ts'
import { UsageError } from '../errors.ts'
import { isId } from '../id.ts'
import type { Field } from '../terminal/output.ts'
import type { JobNames } from './job-names.ts'
import { type ResolveContext, resolveWorkspace } from './resolve.ts'

/** Argument for a job. Without it, the command uses the newest job. */
export const jobArg = Args.string({ description: 'job ID or its first characters [the newest job]' })

/** Number of characters of a job ID that a terminal shows, and that are enough to name a job. */
export const shortIdChars = 8
const idBeginning = new RegExp(`^[0-9a-f]{${shortIdChars}}[0-9a-f-]{0,28}$`, 'i')
/** Maximum number of jobs, newest first, among which the beginning of an ID is looked up. */
const searchedJobsMax = 1_000

/**
 * Finds a job by ID, or by the beginning of its ID. Without `id`, returns the newest job.
 *
 * @throws UsageError             `id` is neither, or several jobs match
 * @throws WbError job_not_found  the job does not exist
 */
export async function findJob(context: ResolveContext, id: string | undefined): Promise<Job> {
  const { client } = context
  if (id !== undefined && !idBeginning.test(id))
    throw new UsageError(`"${id}" is not a job ID`, ['wb jobs list'])
  const { workspaceId } = await resolveWorkspace(context)
  if (id !== undefined && isId(id)) return client.call(jobs.show, { params: { workspaceId, jobId: id } })
  if (id !== undefined) return findByBeginning(client, workspaceId, id.toLowerCase())
  const { items } = await client.call(jobs.list, { params: { workspaceId }, query: { limit: 1 } })
  if (items[0]) return items[0]
  throw new WbError('job_not_found', 'there are no jobs yet', {
    next: ['wb kb ingest handbook ./docs --async'],
  })
}

async function findByBeginning(client: Client, workspaceId: string, beginning: string): Promise<Job> {
  const matches: Job[] = []
  let searched = 0
  for await (const job of client.items(jobs.list, { params: { workspaceId } })) {
    if (job.jobId.startsWith(beginning)) matches.push(job)
    if (++searched === searchedJobsMax) break
  }
  const [match] = matches
  if (match && matches.length === 1) return match
  const ids = matches.map(({ jobId }) => jobId)
  if (match) throw new UsageError(`the IDs of ${matches.length} jobs start with "${beginning}"`, ids)
  throw new WbError('job_not_found', `no ID of a job starts with "${beginning}"`)
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
