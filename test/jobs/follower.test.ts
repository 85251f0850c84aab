import { setTimeout as sleep } from 'node:timers/promises'
import { expect, onTestFinished, test } from 'vitest'
import { readEvents } from '../../src/client/read-events.ts'
import type { Job } from '../../src/contract/jobs.ts'
import { JobFollower } from '../../src/jobs/job-follower.ts'
import type { RowStore } from '../../src/storage/rows.ts'
import { startEmbeddingServer } from '../fakes/embedding-server.ts'
import { makeMockService } from '../harness/resources.ts'
import { openRestrictedWorkspace, type Row } from '../harness/rows.ts'
import { TestClock, waitUntil } from '../harness/runtime.ts'

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

test('event streams of a job share the reads of its document, but not the visibility', async () => {
  const provider = await startEmbeddingServer(3)
  onTestFinished(() => provider.close())
  provider.script({ hang: 'before headers' })
  const clock = new TestClock()
  let reads: string[] = []
  const countReads = (store: RowStore): RowStore => ({
    ...store,
    get(table, key, tags) {
      if (['jobs', 'documents'].includes(table.name)) reads.push(table.name)
      return store.get(table, key, tags)
    },
  })
  const { wb, workspace, base, as } = await openRestrictedWorkspace({
    clock,
    rows: countReads,
    async prepare(path, opened) {
      const fields = { provider: 'ollama', endpointBaseUrl: provider.url } as const
      return {
        embeddingServiceId: (await makeMockService(opened, path.split('/').at(-1)!, fields))
          .embeddingServiceId,
      }
    },
  })
  const text = { text: 'A text.', visibleTo: ['alice', 'bob'] }
  const { jobId, documentId } = (await as('root')(`POST ${base}/ingest?async=true`, text)).body.job as Row
  const events = { alice: [] as string[], bob: [] as string[] }
  async function follow(principal: 'alice' | 'bob') {
    const headers = { 'x-view-as-principal': principal }
    const path = `http://localhost${workspace}/jobs/${jobId}/events`
    const { body } = await wb.runtime.fetch(new Request(path, { headers }))
    for await (const { event } of readEvents(body!, new AbortController().signal))
      events[principal].push(event)
    events[principal].push('end')
  }
  const streams = Array.from({ length: 10 }, () => [follow('alice'), follow('bob')]).flat()
  await waitUntil(() => provider.received.length === 1)
  await sleep(200)

  reads = []
  for (let poll = 0; poll < 3; poll++) {
    clock.advance(500)
    await sleep(100)
  }
  expect(reads).toContain('jobs')
  expect(reads).toContain('documents')
  // Without sharing, each of the 20 streams reads both rows at each of the 3 polls.
  expect(reads.length).toBeLessThan(20)
  expect([...events.alice, ...events.bob]).not.toContain('end')

  events.alice = []
  await as('root')(`PATCH ${base}/documents/${documentId}`, { visibleTo: ['bob'] })
  // The time does not change, so the rows that the streams share have not expired.
  await as('root')(`POST ${workspace}/jobs/${jobId}/cancel`)
  await Promise.all(streams)
  expect(events.alice).toEqual(Array(10).fill('end'))
  expect(events.bob.filter(event => event === 'done')).toHaveLength(10)
})
