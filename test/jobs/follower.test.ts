import { expect, test } from 'vitest'
import type { Job } from '../../src/contract/jobs.ts'
import { JobFollower } from '../../src/jobs/job-follower.ts'

test('stops waiting for a job immediately when the follower returns', async () => {
  const updatedAt = '2026-01-01T00:00:00.000Z'
  const job = { jobId: 'j', status: 'running', updatedAt } as Job
  let waits = 0
  const follower = new JobFollower({
    read: async () => job,
    after: updatedAt,
    wait: () => {
      waits++
      return () => void waits--
    },
  })
  const next = follower.next()
  await new Promise(setImmediate)
  expect(waits).toBe(1)
  await follower.return()
  expect(await next).toEqual({ done: true, value: undefined })
  expect(waits).toBe(0)
  expect(await follower.next()).toEqual({ done: true, value: undefined })
})
