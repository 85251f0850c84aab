import type { Client } from '../../client/client.ts'
import type { Job } from '../../contract/jobs.ts'
import { kb, type Reindexing, type ReindexRequest } from '../../contract/knowledge.ts'
import { CommandFailed } from '../errors.ts'
import { watchJob } from '../jobs/watch-job.ts'
import { formatCounted, type Output } from '../terminal/output.ts'
import type { Progress } from '../terminal/progress.ts'

export interface ReindexContext {
  readonly client: Client
  readonly output: Output
  readonly progress: Progress
  readonly signal: AbortSignal
  readonly base: { readonly workspaceId: string; readonly knowledgeBaseId: string; readonly name: string }
}

/** Starts a job that reindexes a knowledge base. */
export async function startReindex({ client, base }: ReindexContext, body: ReindexRequest): Promise<Job> {
  const { workspaceId, knowledgeBaseId } = base
  const { job } = await client.call(kb.reindex, { params: { workspaceId, knowledgeBaseId }, body })
  return job
}

/**
 * Waits for a job that reindexes a knowledge base, and shows its progress.
 *
 * @returns the job, and the results that {@link reportKept} needs
 * @throws CommandFailed  the job failed
 */
export async function watchReindex(
  { client, progress, signal, base }: ReindexContext,
  job: Job,
): Promise<Reindexing & { documents: NonNullable<Reindexing['documents']> }> {
  const { workspaceId, knowledgeBaseId, name } = base
  const last = await watchJob(client, job, signal, ({ processed, total }) =>
    progress.step({ label: name, done: processed, total: total ?? 0, unit: 'chunks' }),
  )
  progress.end()
  if (last.status === 'failed')
    throw new CommandFailed(last.errorMessage ?? 'the job failed', ['Run the command again to continue.'])
  const reindexing = await client.call(kb.reindexing, { params: { workspaceId, knowledgeBaseId } })
  return { job: reindexing.job, documents: reindexing.documents! }
}

/** Prints how many documents keep their chunks, if there are any. */
export function reportKept({ output }: ReindexContext, kept: number): void {
  if (kept > 0)
    output.note(
      `  ${formatCounted(kept, 'document')} could not be split again, because the stored chunks do not contain the whole text; delete and ingest them again`,
    )
}

/** Prints the ID of a job that was started. */
export function reportStarted({ output, base }: ReindexContext, job: Job, value: unknown = job): void {
  output.reportSaved(value, job.jobId, `reindexing ${base.name} in job ${job.jobId}`)
  output.suggest(`wb jobs watch ${job.jobId}`)
}
