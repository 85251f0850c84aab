import { hostname } from 'node:os'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { audit } from '../../src/contract/audit.ts'
import { type Job, jobs } from '../../src/contract/jobs.ts'
import { baseIn, makeBase } from '../harness/resources.ts'
import { open, TestClock, type TestRuntime, waitUntil } from '../harness/runtime.ts'
import { changeStoreFile, storeFile } from '../harness/store-file.ts'
import {
  cancel,
  chunkPerParagraph,
  createHostedBase,
  embeddedTexts,
  enqueue,
  expectNothingLeft,
  jobOf,
  sendForJob,
  textOf,
  waitForEnd,
} from './ingest-jobs.ts'

const day = 86_400_000
const hang = { hang: 'before headers' } as const

async function ingestLoad(wb: TestRuntime): Promise<unknown> {
  return (await wb.send('GET /readyz')).body.ingest
}

/** Simulates a killed process whose process ID the next one reuses. */
function simulateKilledProcess(dataDir: string, deaths = 0): void {
  const owner = `${hostname()}:${process.pid}:dead`
  const lease = `'$.leaseOwner', '${owner}', '$.leaseUntil', '9999', '$.deaths', ${deaths}`
  changeStoreFile(dataDir, `UPDATE jobs SET body = json_set(body, ${lease})`)
}

async function claims(wb: TestRuntime, { workspaceId, jobId }: Job): Promise<unknown[]> {
  const { items } = await wb.call(audit.list, { params: { workspaceId }, query: { action: 'job.claim' } })
  return items.filter(({ details }) => details?.jobId === jobId)
}

describe('jobs', () => {
  test('run a few at a time, in order, and /readyz reports their number', async () => {
    const { wb, base, provider } = await createHostedBase({
      config: { runtime: { maxConcurrentIngestJobs: 2 } },
    })
    provider.script(hang, hang)
    const sent = []
    for (const word of ['first', 'second', 'third', 'fourth']) sent.push(await enqueue(wb, base, word))
    await waitUntil(() => provider.received.length === 2)
    expect(await ingestLoad(wb)).toEqual({ active: 2, capacity: 2, queued: 2 })
    expect(embeddedTexts(provider).sort()).toEqual(['first', 'second'])
    for (const { job } of sent.slice(0, 2)) await cancel(wb, job)
    expect(await waitForEnd(wb, sent[3]!.job)).toMatchObject({ status: 'succeeded' })
    expect(embeddedTexts(provider).slice(2)).toEqual(['third', 'fourth'])
    await waitUntil(
      async () => JSON.stringify(await ingestLoad(wb)) === '{"active":0,"capacity":2,"queued":0}',
    )
  })

  test('of another workspace run although an embedder that does not answer occupies the capacity', async () => {
    const { wb, base, provider } = await createHostedBase({
      config: { runtime: { maxConcurrentIngestJobs: 2 } },
    })
    provider.script(hang, hang)
    const sent = []
    for (const word of ['first', 'second', 'third']) sent.push(await enqueue(wb, base, word))
    await waitUntil(() => provider.received.length === 2)
    const other = await enqueue(wb, await makeBase(wb), 'other')
    expect(await waitForEnd(wb, other.job)).toMatchObject({ status: 'succeeded' })
    expect(await jobOf(wb, sent[2]!.job)).toMatchObject({ status: 'pending' })
    for (const { job } of sent) await cancel(wb, job)
  })

  test('write each claim to the audit trail, as an action of the runtime', async () => {
    const wb = await open({ server: true })
    const { job } = await enqueue(wb, await makeBase(wb), 'text')
    await waitForEnd(wb, job)
    expect(await claims(wb, job)).toMatchObject([
      { subject: { type: 'system' }, outcome: 'success', details: { jobId: job.jobId, jobKind: 'ingest' } },
    ])
  })

  test('run in a command that waits for them, and stay pending in one that does not', async () => {
    const first = await open()
    const base = await makeBase(first)
    const { job } = await enqueue(first, base, 'later')
    expect(await first.runtime.pending()).toBe(1)
    await first.close()
    const second = await open({ dataDir: first.dataDir })
    expect(await jobOf(second, job)).toMatchObject({ status: 'pending' })
    await second.settle()
    expect(await jobOf(second, job)).toMatchObject({ status: 'succeeded' })
    expect(await second.runtime.pending()).toBe(0)
  })

  test('that are pending start when a server starts', async () => {
    const command = await open()
    const { job } = await enqueue(command, await makeBase(command), 'later')
    const server = await open({ dataDir: command.dataDir, server: true })
    expect(await waitForEnd(server, job)).toMatchObject({ status: 'succeeded' })
  })

  test('resume after a server stops, without repeating paid requests', async () => {
    const { wb, base, provider } = await createHostedBase()
    provider.script({}, {}, {}, {}, hang)
    const { job } = await enqueue(wb, base, textOf(12), chunkPerParagraph)
    await waitUntil(async () => (await jobOf(wb, job)).processed === 8)
    await waitUntil(() => provider.received.length >= 5)
    await wb.close()
    const before = provider.received.slice(0, 4).flatMap(({ body }) => body.input!)
    const requestCount = provider.received.length
    const next = await open({ dataDir: wb.dataDir, server: true })
    expect(await waitForEnd(next, job)).toMatchObject({ status: 'succeeded', result: { chunks: 12 } })
    const after = provider.received.slice(requestCount).flatMap(({ body }) => body.input!)
    expect([before.length, after.length]).toEqual([8, 4])
    expect(new Set([...before, ...after]).size).toBe(12)
    expect(await baseIn(next, { ...base.params, name: base.name }).search('wing')).toHaveLength(12)
    expect(await claims(next, job)).toHaveLength(2)
    await expectNothingLeft(wb.dataDir)
  })

  test('resume immediately if their process is gone and its process ID was reused, as in a container', async () => {
    const { wb, base, provider } = await createHostedBase()
    provider.script(hang)
    const { job } = await enqueue(wb, base, textOf(1), chunkPerParagraph)
    await waitUntil(() => provider.received.length === 1)
    await wb.close()
    simulateKilledProcess(wb.dataDir)
    const next = await open({ dataDir: wb.dataDir, server: true })
    expect(await waitForEnd(next, job)).toMatchObject({ status: 'succeeded' })
  })

  test('fail after ten processes ended during them without progress', async () => {
    const { wb, base, provider } = await createHostedBase()
    provider.script({}, {}, hang)
    const { job } = await enqueue(wb, base, textOf(8), chunkPerParagraph)
    await waitUntil(async () => (await jobOf(wb, job)).processed === 4 && provider.received.length >= 3)
    await wb.close()
    simulateKilledProcess(wb.dataDir, 9)
    provider.script(hang)
    const tenth = await open({ dataDir: wb.dataDir, server: true })
    await waitForEnd(tenth, job)
    expect(await jobOf(tenth, job)).toMatchObject({
      status: 'failed',
      processed: 4,
      errorMessage: 'the runtime crashed 10 times while running this job',
    })
    expect(await baseIn(tenth, { ...base.params, name: base.name }).documents()).toMatchObject([
      { status: 'failed' },
    ])
    await expectNothingLeft(wb.dataDir)
  })

  test('reset the count of ended processes after progress', async () => {
    const { wb, base, provider } = await createHostedBase()
    provider.script(hang)
    const { job } = await enqueue(wb, base, textOf(8), chunkPerParagraph)
    await waitUntil(() => provider.received.length >= 1)
    await wb.close()
    simulateKilledProcess(wb.dataDir, 8)
    provider.script({}, {}, hang)
    const next = await open({ dataDir: wb.dataDir, server: true })
    await waitUntil(async () => (await jobOf(next, job)).processed === 4)
    expect(storeFile(wb.dataDir).one(`SELECT body ->> '$.deaths' AS deaths FROM jobs`)).toEqual({ deaths: 0 })
  })

  test('are embedded again if the model has changed', async () => {
    const { wb, base, provider } = await createHostedBase()
    provider.script({}, {}, hang)
    const { job } = await enqueue(wb, base, textOf(8), chunkPerParagraph)
    await waitUntil(async () => (await jobOf(wb, job)).processed === 4 && provider.received.length >= 3)
    await wb.close()
    const source = `'$.source'`
    changeStoreFile(wb.dataDir, `UPDATE job_batches SET body = json_set(body, ${source}, 'of another model')`)
    const requestCount = provider.received.length
    const next = await open({ dataDir: wb.dataDir, server: true })
    expect(await waitForEnd(next, job)).toMatchObject({ status: 'succeeded' })
    expect(provider.received.slice(requestCount).flatMap(({ body }) => body.input!)).toHaveLength(8)
  })
})

describe('two processes', () => {
  test('share the jobs without running any twice', async () => {
    const one = await open()
    const base = await makeBase(one)
    const two = await open({ dataDir: one.dataDir })
    const sent = []
    for (let n = 0; n < 30; n++) sent.push(await enqueue(one, base, `text ${n}`))
    await Promise.all([one.settle(), two.settle()])
    for (const { job } of sent) {
      expect(await jobOf(one, job)).toMatchObject({ status: 'succeeded' })
      expect(await claims(one, job)).toHaveLength(1)
    }
    expect(await base.documents()).toHaveLength(30)
    await expectNothingLeft(one.dataDir)
  })

  test('accept a text or a file name once', async () => {
    const one = await open()
    const base = await makeBase(one)
    const two = await open({ dataDir: one.dataDir })
    const name = { sourceFilename: 'one.md' }
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        sendForJob(n % 2 ? one : two, base, n < 10 ? 'same' : `text ${n}`, n < 10 ? {} : name),
      ),
    )
    expect(answers.filter(answer => 'job' in answer)).toHaveLength(2)
    await Promise.all([one.settle(), two.settle()])
    expect((await base.documents()).map(({ status }) => status)).toEqual(['ready', 'ready'])
    await expectNothingLeft(one.dataDir)
  })

  test('a job that another process cancels stops, and writes nothing', async () => {
    const { wb, base, provider } = await createHostedBase()
    provider.script({}, {}, { delayMs: 300 }, { delayMs: 300 })
    const { job } = await enqueue(wb, base, textOf(20), chunkPerParagraph)
    await waitUntil(() => provider.received.length >= 3)
    const other = await open({ dataDir: wb.dataDir })
    const cancelled = await cancel(other, job)
    await waitUntil(async () => JSON.stringify(await ingestLoad(wb)).includes('"active":0'))
    expect(await jobOf(wb, job)).toEqual(cancelled)
    expect(embeddedTexts(provider).length).toBeLessThan(20)
    expect(await base.documents()).toMatchObject([{ status: 'failed', errorMessage: 'cancelled' }])
    await expectNothingLeft(wb.dataDir)
  })

  test('another process takes over a job whose lease has expired, and the first one writes nothing', async () => {
    const config = { controlPlane: { driver: 'sqlite', jobsResume: { graceMs: 60_000, intervalMs: 10_000 } } }
    const { wb: slow, base, provider } = await createHostedBase({ config })
    provider.script(hang)
    const { job } = await enqueue(slow, base, textOf(1), chunkPerParagraph)
    await waitUntil(() => provider.received.length === 1)
    const lapsed = new Date(Date.now() - 1_000).toISOString()
    const other = await open({ dataDir: slow.dataDir })
    await other.settle()
    expect(await jobOf(other, job)).toMatchObject({ status: 'running' })
    changeStoreFile(slow.dataDir, `UPDATE jobs SET body = json_set(body, '$.leaseUntil', '${lapsed}')`)
    await other.settle()
    expect(await jobOf(other, job)).toMatchObject({ status: 'succeeded' })
    await slow.close()
    expect(await jobOf(other, job)).toMatchObject({ status: 'succeeded' })
    expect(await claims(other, job)).toHaveLength(2)
    await expectNothingLeft(slow.dataDir)
  })
})

describe('cancelling', () => {
  test('ends a waiting job and its document', async () => {
    const wb = await open()
    const base = await makeBase(wb)
    const { job } = await enqueue(wb, base, 'text', { sourceFilename: 'one.md' })
    expect(await cancel(wb, job)).toMatchObject({ status: 'failed', errorMessage: 'cancelled' })
    expect(await base.documents()).toMatchObject([{ status: 'failed', errorMessage: 'cancelled' }])
    expect(await wb.runtime.pending()).toBe(0)
    await expectNothingLeft(wb.dataDir)
  })

  test('ends a running job immediately, without further requests to the provider', async () => {
    const { wb, base, provider } = await createHostedBase()
    provider.script({}, {}, hang)
    const { job } = await enqueue(wb, base, textOf(20), chunkPerParagraph)
    await waitUntil(() => provider.received.length >= 3)
    const cancelled = await cancel(wb, job)
    expect(cancelled).toMatchObject({ status: 'failed', errorMessage: 'cancelled', processed: 4 })
    await waitUntil(async () => JSON.stringify(await ingestLoad(wb)).includes('"active":0'))
    expect(await jobOf(wb, job)).toEqual(cancelled)
    expect(embeddedTexts(provider).length).toBeLessThanOrEqual(8)
    await expectNothingLeft(wb.dataDir)
    expect(await base.ingest(textOf(20), chunkPerParagraph)).toMatchObject({ chunks: 20 })
  })

  test('does not change a job that has ended', async () => {
    const wb = await open({ server: true })
    const { job } = await enqueue(wb, await makeBase(wb), 'text')
    const done = await waitForEnd(wb, job)
    expect(await cancel(wb, job)).toEqual(done)
  })

  test('leaves a job either cancelled or complete, at any time', async () => {
    const wb = await open({ server: true })
    const base = await makeBase(wb)
    let n = 0
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 30 }), async waitMs => {
        const { job, document } = await enqueue(wb, base, `${textOf(30)} ${n++}`, chunkPerParagraph)
        await new Promise(resolve => setTimeout(resolve, waitMs))
        const { status, errorMessage } = await cancel(wb, job)
        const { items } = await wb.call(jobs.list, {
          params: { workspaceId: job.workspaceId },
          query: { limit: 200 },
        })
        expect(items.find(({ jobId }) => jobId === job.jobId)).toMatchObject({ status, errorMessage })
        const row = (await base.documents()).find(({ documentId }) => documentId === document.documentId)
        expect(row).toMatchObject({ status: status === 'succeeded' ? 'ready' : 'failed', errorMessage })
      }),
      { numRuns: 20 },
    )
    await expectNothingLeft(wb.dataDir)
  })
})

test('S7.3-12: a job is kept for the configured number of days, and is 404 afterwards', async () => {
  const clock = new TestClock()
  const wb = await open({ server: true, clock, config: { runtime: { jobs: { retentionDays: 2 } } } })
  const { job } = await enqueue(wb, await makeBase(wb), 'text')
  await waitForEnd(wb, job)
  clock.advance(2 * day - 3_600_000)
  await new Promise(resolve => setTimeout(resolve, 50))
  expect(await jobOf(wb, job)).toMatchObject({ status: 'succeeded' })
  clock.advance(7_200_000)
  await waitUntil(() => storeFile(wb.dataDir).one('SELECT count(*) AS n FROM jobs').n === 0)
  await expect(jobOf(wb, job)).rejects.toMatchObject({ code: 'job_not_found', status: 404 })
})

test('the update time of a job always increases, even if the clock stands still', async () => {
  const wb = await open({ server: true, clock: new TestClock() })
  const base = await makeBase(wb)
  const { job } = await enqueue(wb, base, 'text')
  const done = await waitForEnd(wb, job)
  expect(done.updatedAt > job.updatedAt).toBe(true)
  expect(Date.parse(done.updatedAt) - Date.parse(job.updatedAt)).toBeGreaterThanOrEqual(5)
})
