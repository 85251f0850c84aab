import { documents, type IngestInput } from '../../src/contract/documents.ts'
import { type Job, jobs } from '../../src/contract/jobs.ts'
import type { Base } from '../harness/place.ts'
import { type Opened, until } from '../harness/runtime.ts'

interface Enqueued {
  readonly job: Job
  readonly document: { documentId: string; status: string }
}

/** Send a text for a job to ingest. */
export async function enqueue(
  { call }: Pick<Opened, 'call'>,
  { params }: Base,
  text: string,
  fields: Partial<IngestInput> = {},
): Promise<Enqueued> {
  const answer = await call(documents.ingest, { params, query: { async: 'true' }, body: { text, ...fields } })
  if (!('job' in answer)) throw new Error(`it was there: ${JSON.stringify(answer)}`)
  return answer
}

export function jobOf({ call }: Pick<Opened, 'call'>, { workspaceId, jobId }: Job): Promise<Job> {
  return call(jobs.show, { params: { workspaceId, jobId } })
}

/** A job at its end. */
export async function ended(opened: Pick<Opened, 'call'>, job: Job): Promise<Job> {
  let now = job
  await until(async () => {
    now = await jobOf(opened, job)
    return now.status === 'succeeded' || now.status === 'failed'
  })
  return now
}
