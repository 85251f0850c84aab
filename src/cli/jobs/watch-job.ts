import type { Client } from '../../client/client.ts'
import { type Job, jobs } from '../../contract/jobs.ts'
import { followEvents } from './follow-events.ts'

/**
 * Follows a job until it ends, and reconnects when the connection is lost.
 *
 * @param onChange  called with the job after each change, including the last one
 * @throws WbError  when the job no longer exists
 */
export async function watchJob(
  client: Client,
  { workspaceId, jobId }: Job,
  signal: AbortSignal,
  onChange: (job: Job) => void,
): Promise<Job> {
  const params = { workspaceId, jobId }
  let last: Job | undefined
  const events = followEvents({
    after: undefined,
    open: lastEventId => client.events(jobs.events, { params }, { lastEventId, signal }),
    onLost() {},
    onReconnected() {},
    signal,
  })
  for await (const { event, data } of events) {
    if (event === 'done' && last) return last
    last = data as Job
    onChange(last)
  }
  throw signal.reason
}
