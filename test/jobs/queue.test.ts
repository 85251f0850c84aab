import { expect, test } from 'vitest'
import { documents } from '../../src/contract/documents.ts'
import { WbError } from '../../src/contract/errors.ts'
import { IngestQueue } from '../../src/knowledge/ingest/ingest-queue.ts'
import { makeBase, makeWorkspace } from '../harness/resources.ts'
import { open, TestClock, waitUntil } from '../harness/runtime.ts'
import { createHostedBase, documentOf, enqueue, jobOf, sendForJob, waitForEnd } from './ingest-jobs.ts'

const hang = { hang: 'before headers' } as const

const ingestQueue = { totalBytes: 4_000_000, perWorkspaceBytes: 1_000_000 }
const config = { runtime: { ingestQueue } }

/** Creates a text of 300,000 bytes. */
function largeText(name: string): string {
  return name.padEnd(300_000, 'x')
}

test('texts that wait for jobs are limited by workspace, and rejected texts get 503 with Retry-After', async () => {
  const wb = await open({ config })
  const base = await makeBase(wb)
  for (const name of ['1', '2', '3']) await enqueue(wb, base, largeText(name))
  const { status, body, headers } = await wb.send(`POST ${base.path}/ingest?async=true`, {
    text: largeText('4'),
  })
  expect([status, headers.get('retry-after')]).toEqual([503, '2'])
  expect(body.error).toMatchObject({
    code: 'overloaded',
    message: 'too much text is waiting for ingest jobs',
  })
  const other = await makeBase(wb, await makeWorkspace(wb, { name: 'other' }))
  await enqueue(wb, other, largeText('4'))
  expect(await sendForJob(wb, base, largeText('3')), 'an existing text needs no room').toMatchObject({
    outcome: 'duplicate',
  })
})

test('a command without a server runs jobs while it waits for room', async () => {
  const wb = await open({ config })
  const base = await makeBase(wb)
  const { job } = await enqueue(wb, base, largeText('1'))
  for (const name of ['2', '3']) await enqueue(wb, base, largeText(name))
  await expect(enqueue(wb, base, largeText('4'))).rejects.toThrow(WbError)
  await waitForEnd(wb, job)
  await waitUntil(async () => {
    const answer = await sendForJob(wb, base, largeText('4')).catch(() => undefined)
    return answer !== undefined
  })
})

test('workspaces that fill the queue get equal shares, and leave room for another one', async () => {
  const queue = new IngestQueue({
    rows: { measure: async () => ({ rows: 0, bytes: 0 }) },
    limits: { totalBytes: 4_000_000, perWorkspaceBytes: 4_000_000 },
    onFull() {},
  })
  const fill = async (workspaceId: string) => {
    for (let count = 0; ; count++) {
      const isAdded = await queue.add(workspaceId, largeText('')).then(
        () => true,
        () => false,
      )
      if (!isAdded) return count
    }
  }
  // 13 texts fit. A workspace can use as much as it leaves free.
  expect([await fill('first'), await fill('second'), await fill('third')]).toEqual([6, 3, 2])
})

test('a text that is larger than the queue is accepted if the queue is empty', async () => {
  const wb = await open({
    config: { runtime: { ingestQueue: { totalBytes: 1_000_000, perWorkspaceBytes: 1_000_000 } } },
  })
  const base = await makeBase(wb)
  await enqueue(wb, base, 'x'.repeat(2_000_000))
  await expect(enqueue(wb, base, 'y')).rejects.toThrow('too much text is waiting')
})

test('workspaces take turns', async () => {
  const { wb, base, provider } = await createHostedBase({
    config: { runtime: { maxConcurrentIngestJobs: 1 } },
  })
  provider.script(hang)
  const sent = []
  for (const text of ['1', '2', '3']) sent.push(await enqueue(wb, base, text))
  await waitUntil(() => provider.received.length === 1)
  const other = await makeBase(wb, await makeWorkspace(wb, { name: 'other' }))
  const urgent = await enqueue(wb, other, 'the only one')
  await wb.send(`POST /api/v1/workspaces/${base.params.workspaceId}/jobs/${sent[0]!.job.jobId}/cancel`)
  await waitForEnd(wb, urgent.job)
  await waitForEnd(wb, sent[2]!.job)
  const ends = await Promise.all(
    [urgent, ...sent.slice(1)].map(async ({ job }) => Date.parse((await jobOf(wb, job)).updatedAt)),
  )
  expect(ends[0]).toBeLessThanOrEqual(ends[2]!)
  expect((await documentOf(wb, other, urgent.document.documentId)).status).toBe('ready')
})

test('a request waits while too much text is in progress, and then gets 503 with Retry-After', async () => {
  const clock = new TestClock()
  const hosted = await createHostedBase(
    { clock, config: { runtime: { ingestQueue: { inProgressBytes: 1_000_000 } } } },
    1_000,
  )
  const { wb, base, provider } = hosted
  provider.script(hang, hang)
  const first = wb.send(`POST ${base.path}/ingest`, { text: largeText('1') })
  await waitUntil(() => provider.received.length > 0)
  const second = wb.send(`POST ${base.path}/ingest`, { text: largeText('2') })
  await new Promise(resolve => setTimeout(resolve, 100))
  clock.advance(10_000)
  const { status, body, headers } = await second
  expect([status, headers.get('retry-after')]).toEqual([503, '1'])
  expect(body.error).toMatchObject({ code: 'overloaded', message: 'too much text is being ingested' })
  await provider.close()
  await first
})

test('a text that waits is not ingested if its client disconnects', async () => {
  const { wb, base, provider } = await createHostedBase(
    { config: { runtime: { ingestQueue: { inProgressBytes: 1_000_000 } } } },
    1_000,
  )
  provider.script(hang)
  const clients = [new AbortController(), new AbortController()]
  const ended: unknown[] = []
  for (const [at, { signal }] of clients.entries()) {
    const request = { params: base.params, body: { text: largeText(String(at)) } }
    ended.push(wb.call(documents.ingest, request, { signal }).catch(() => undefined))
    await waitUntil(() => provider.received.length > 0)
  }
  await new Promise(resolve => setTimeout(resolve, 100))
  for (const client of clients.reverse()) client.abort()
  await Promise.all(ended)
  await base.ingest(largeText('last'))
  expect((await base.documents()).map(({ status }) => status)).toEqual(['failed', 'ready'])
})
