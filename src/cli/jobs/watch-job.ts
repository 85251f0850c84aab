import type { Client } from '../../client/client.ts'
import { type Job, jobs } from '../../contract/jobs.ts'
import { follow } from './follow.ts'

/**
 * Follow a job to its end, across connections that break.
 *
 * @param onChange  told of each change, the last one too
 * @throws WbError  the job is gone
 */
export async function watchJob(
  client: Client,
  { workspaceId, jobId }: Job,
  signal: AbortSignal,
  onChange: (job: Job) => void,
): Promise<Job> {
  const params = { workspaceId, jobId }
  let last: Job | undefined
  const events = follow({
    after: undefined,
    open: lastEventId => client.events(jobs.events, { params }, { lastEventId, signal }),
    onLost() {},
    onFound() {},
    signal,
  })
  for await (const { event, data } of events) {
    if (event === 'done' && last) return last
    last = data as Job
    onChange(last)
  }
  throw signal.reason
}
