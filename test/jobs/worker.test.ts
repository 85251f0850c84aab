import { hostname } from 'node:os'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { audit } from '../../src/contract/audit.ts'
import { type Job, jobs } from '../../src/contract/jobs.ts'
import { baseAt, makeBase } from '../harness/place.ts'
import { type Opened, open, TestClock, until } from '../harness/runtime.ts'
import { storeFile } from '../harness/store.ts'
import { change } from './database.ts'
import { cancel, cut, ended, enqueue, expectNothingLeft, hosted, jobOf, paid, send, textOf } from './stage.ts'

const day = 86_400_000
const hang = { hang: 'before headers' } as const

async function load(wb: Opened): Promise<unknown> {
  return (await wb.send('GET /readyz')).body.ingest
}

/** The process at work on the one job is killed, and the next one has its number. */
function abandon(dataDir: string, deaths = 0): void {
  const owner = `${hostname()}:${process.pid}:dead`
  const left = `'$.leaseOwner', '${owner}', '$.leaseUntil', '9999', '$.deaths', ${deaths}`
  change(dataDir, `UPDATE jobs SET body = json_set(body, ${left})`)
}

async function claims(wb: Opened, { workspaceId, jobId }: Job): Promise<unknown[]> {
  const { items } = await wb.call(audit.list, { params: { workspaceId }, query: { action: 'job.claim' } })
  return items.filter(({ details }) => details?.jobId === jobId)
}

describe('jobs', () => {
  test('are worked on a few at once, in the order in which they came; /readyz says how many', async () => {
    const { wb, base, provider } = await hosted({ config: { runtime: { maxConcurrentIngestJobs: 2 } } })
    provider.script(hang, hang)
    const sent = []
    for (const word of ['first', 'second', 'third', 'fourth']) sent.push(await enqueue(wb, base, word))
    await until(() => provider.received.length === 2)
    expect(await load(wb)).toEqual({ active: 2, capacity: 2, queued: 2 })
    expect(paid(provider).sort()).toEqual(['first', 'second'])
    for (const { job } of sent.slice(0, 2)) await cancel(wb, job)
    expect(await ended(wb, sent[3]!.job)).toMatchObject({ status: 'succeeded' })
    expect(paid(provider).slice(2)).toEqual(['third', 'fourth'])
    await until(async () => JSON.stringify(await load(wb)) === '{"active":0,"capacity":2,"queued":0}')
  })

  test('each claim is in the audit trail, as an act of the runtime', async () => {
    const wb = await open({ server: true })
    const { job } = await enqueue(wb, await makeBase(wb), 'text')
    await ended(wb, job)
    expect(await claims(wb, job)).toMatchObject([
      { subject: { type: 'system' }, outcome: 'success', details: { jobId: job.jobId, jobKind: 'ingest' } },
    ])
  })

  test('wait in a command until it settles, and are left to the next process by one that does not', async () => {
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

  test('that wait are taken up by a server that starts', async () => {
    const command = await open()
    const { job } = await enqueue(command, await makeBase(command), 'later')
    const server = await open({ dataDir: command.dataDir, server: true })
    expect(await ended(server, job)).toMatchObject({ status: 'succeeded' })
  })

  test('are left where they are by a server that ends, and nothing is paid for twice', async () => {
    const { wb, base, provider } = await hosted()
    provider.script({}, {}, {}, {}, hang)
    const { job } = await enqueue(wb, base, textOf(12), cut)
    await until(async () => (await jobOf(wb, job)).processed === 8)
    await until(() => provider.received.length >= 5)
    await wb.close()
    const before = provider.received.slice(0, 4).flatMap(({ body }) => body.input!)
    const asked = provider.received.length
    const next = await open({ dataDir: wb.dataDir, server: true })
    expect(await ended(next, job)).toMatchObject({ status: 'succeeded', result: { chunks: 12 } })
    const after = provider.received.slice(asked).flatMap(({ body }) => body.input!)
    expect([before.length, after.length]).toEqual([8, 4])
    expect(new Set([...before, ...after]).size).toBe(12)
    expect(await baseAt(next, { ...base.params, name: base.name }).search('wing')).toHaveLength(12)
    expect(await claims(next, job)).toHaveLength(2)
    expectNothingLeft(wb.dataDir)
  })

  test('are taken up at once when their process is gone and this one has its number, as in a container', async () => {
    const { wb, base, provider } = await hosted()
    provider.script(hang)
    const { job } = await enqueue(wb, base, textOf(1), cut)
    await until(() => provider.received.length === 1)
    await wb.close()
    abandon(wb.dataDir)
    const next = await open({ dataDir: wb.dataDir, server: true })
    expect(await ended(next, job)).toMatchObject({ status: 'succeeded' })
  })

  test('are given up when ten processes have died at them, none of which got further', async () => {
    const { wb, base, provider } = await hosted()
    provider.script({}, {}, hang)
    const { job } = await enqueue(wb, base, textOf(8), cut)
    await until(async () => (await jobOf(wb, job)).processed === 4 && provider.received.length >= 3)
    await wb.close()
    abandon(wb.dataDir, 9)
    provider.script(hang)
    const tenth = await open({ dataDir: wb.dataDir, server: true })
    await ended(tenth, job)
    expect(await jobOf(tenth, job)).toMatchObject({
      status: 'failed',
      processed: 4,
      errorMessage: 'the runtime crashed 10 times while processing this text',
    })
    expect(await baseAt(tenth, { ...base.params, name: base.name }).documents()).toMatchObject([
      { status: 'failed' },
    ])
    expectNothingLeft(wb.dataDir)
  })

  test('count the dead anew when they get further', async () => {
    const { wb, base, provider } = await hosted()
    provider.script(hang)
    const { job } = await enqueue(wb, base, textOf(8), cut)
    await until(() => provider.received.length >= 1)
    await wb.close()
    abandon(wb.dataDir, 8)
    provider.script({}, {}, hang)
    const next = await open({ dataDir: wb.dataDir, server: true })
    await until(async () => (await jobOf(next, job)).processed === 4)
    expect(storeFile(wb.dataDir).one(`SELECT body ->> '$.deaths' AS deaths FROM jobs`)).toEqual({ deaths: 0 })
  })

  test('are embedded again where the model changed since', async () => {
    const { wb, base, provider } = await hosted()
    provider.script({}, {}, hang)
    const { job } = await enqueue(wb, base, textOf(8), cut)
    await until(async () => (await jobOf(wb, job)).processed === 4 && provider.received.length >= 3)
    await wb.close()
    const source = `'$.source'`
    change(wb.dataDir, `UPDATE job_batches SET body = json_set(body, ${source}, 'of another model')`)
    const asked = provider.received.length
    const next = await open({ dataDir: wb.dataDir, server: true })
    expect(await ended(next, job)).toMatchObject({ status: 'succeeded' })
    expect(provider.received.slice(asked).flatMap(({ body }) => body.input!)).toHaveLength(8)
  })
})

describe('two processes', () => {
  test('share the jobs, and none is done twice', async () => {
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
    expectNothingLeft(one.dataDir)
  })

  test('take one text and one file name in once, whoever is first', async () => {
    const one = await open()
    const base = await makeBase(one)
    const two = await open({ dataDir: one.dataDir })
    const name = { sourceFilename: 'one.md' }
    const answers = await Promise.all(
      Array.from({ length: 20 }, (_, n) =>
        send(n % 2 ? one : two, base, n < 10 ? 'same' : `text ${n}`, n < 10 ? {} : name),
      ),
    )
    expect(answers.filter(answer => 'job' in answer)).toHaveLength(2)
    await Promise.all([one.settle(), two.settle()])
    expect((await base.documents()).map(({ status }) => status)).toEqual(['ready', 'ready'])
    expectNothingLeft(one.dataDir)
  })

  test('a job that another process cancels is given up here, and writes nothing', async () => {
    const { wb, base, provider } = await hosted()
    provider.script({}, {}, { delayMs: 300 }, { delayMs: 300 })
    const { job } = await enqueue(wb, base, textOf(20), cut)
    await until(() => provider.received.length >= 3)
    const other = await open({ dataDir: wb.dataDir })
    const cancelled = await cancel(other, job)
    await until(async () => JSON.stringify(await load(wb)).includes('"active":0'))
    expect(await jobOf(wb, job)).toEqual(cancelled)
    expect(paid(provider).length).toBeLessThan(20)
    expect(await base.documents()).toMatchObject([{ status: 'failed', errorMessage: 'cancelled' }])
    expectNothingLeft(wb.dataDir)
  })

  test('a job whose process says nothing is taken over after its time, and the late one writes nothing', async () => {
    const config = { controlPlane: { driver: 'sqlite', jobsResume: { graceMs: 60_000, intervalMs: 10_000 } } }
    const { wb: slow, base, provider } = await hosted({ config })
    provider.script(hang)
    const { job } = await enqueue(slow, base, textOf(1), cut)
    await until(() => provider.received.length === 1)
    const lapsed = new Date(Date.now() - 1_000).toISOString()
    const other = await open({ dataDir: slow.dataDir })
    await other.settle()
    expect(await jobOf(other, job)).toMatchObject({ status: 'running' })
    change(slow.dataDir, `UPDATE jobs SET body = json_set(body, '$.leaseUntil', '${lapsed}')`)
    await other.settle()
    expect(await jobOf(other, job)).toMatchObject({ status: 'succeeded' })
    await slow.close()
    expect(await jobOf(other, job)).toMatchObject({ status: 'succeeded' })
    expect(await claims(other, job)).toHaveLength(2)
    expectNothingLeft(slow.dataDir)
  })
})

describe('cancelling', () => {
  test('ends a job that waits, and its document', async () => {
    const wb = await open()
    const base = await makeBase(wb)
    const { job } = await enqueue(wb, base, 'text', { sourceFilename: 'one.md' })
    expect(await cancel(wb, job)).toMatchObject({ status: 'failed', errorMessage: 'cancelled' })
    expect(await base.documents()).toMatchObject([{ status: 'failed', errorMessage: 'cancelled' }])
    expect(await wb.runtime.pending()).toBe(0)
    expectNothingLeft(wb.dataDir)
  })

  test('ends a job that runs at once, and the provider is asked no more', async () => {
    const { wb, base, provider } = await hosted()
    provider.script({}, {}, hang)
    const { job } = await enqueue(wb, base, textOf(20), cut)
    await until(() => provider.received.length >= 3)
    const cancelled = await cancel(wb, job)
    expect(cancelled).toMatchObject({ status: 'failed', errorMessage: 'cancelled', processed: 4 })
    await until(async () => JSON.stringify(await load(wb)).includes('"active":0'))
    expect(await jobOf(wb, job)).toEqual(cancelled)
    expect(paid(provider).length).toBeLessThanOrEqual(8)
    expectNothingLeft(wb.dataDir)
    expect(await base.ingest(textOf(20), cut)).toMatchObject({ chunks: 20 })
  })

  test('leaves a job that has ended as it is', async () => {
    const wb = await open({ server: true })
    const { job } = await enqueue(wb, await makeBase(wb), 'text')
    const done = await ended(wb, job)
    expect(await cancel(wb, job)).toEqual(done)
  })

  test('at any moment ends a job as cancelled or leaves it done, whole', async () => {
    const wb = await open({ server: true })
    const base = await makeBase(wb)
    let n = 0
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 0, max: 30 }), async waitMs => {
        const { job, document } = await enqueue(wb, base, `${textOf(30)} ${n++}`, cut)
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
    expectNothingLeft(wb.dataDir)
  })
})

test('S7.3-12: a job is kept for the days that the configuration says, and is 404 after', async () => {
  const clock = new TestClock()
  const wb = await open({ server: true, clock, config: { runtime: { jobs: { retentionDays: 2 } } } })
  const { job } = await enqueue(wb, await makeBase(wb), 'text')
  await ended(wb, job)
  clock.advance(2 * day - 3_600_000)
  await new Promise(resolve => setTimeout(resolve, 50))
  expect(await jobOf(wb, job)).toMatchObject({ status: 'succeeded' })
  clock.advance(7_200_000)
  await until(() => storeFile(wb.dataDir).one('SELECT count(*) AS n FROM jobs').n === 0)
  await expect(jobOf(wb, job)).rejects.toMatchObject({ code: 'job_not_found', status: 404 })
})

test('each change of a job is later than the one before, also where time stands still', async () => {
  const wb = await open({ server: true, clock: new TestClock() })
  const base = await makeBase(wb)
  const { job } = await enqueue(wb, base, 'text')
  const done = await ended(wb, job)
  expect(done.updatedAt > job.updatedAt).toBe(true)
  expect(Date.parse(done.updatedAt) - Date.parse(job.updatedAt)).toBeGreaterThanOrEqual(5)
})
