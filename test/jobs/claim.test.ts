import { describe, expect, onTestFinished, test } from 'vitest'
import { Ingest } from '../../src/contract/documents.ts'
import { newJob } from '../../src/jobs/job-changes.ts'
import { ClaimLost, JobClaim } from '../../src/jobs/job-claim.ts'
import { JobEvents } from '../../src/jobs/job-events.ts'
import { openEmbeddedStore } from '../../src/storage/open.ts'
import { tables } from '../../src/storage/tables.ts'
import { TestClock } from '../harness/runtime.ts'

const leaseMs = 60_000
const documentLocation = { workspaceId: 'w', knowledgeBaseId: 'k', documentId: 'd' }
const noLog = { debug() {}, info() {}, warn() {}, error() {} }
/** A check of a row that does not exist. */
const failingCheck = { op: 'require' as const, table: tables.workspaces, key: ['nowhere'] }

/** Creates a job with a claim of this process, and a clock. */
async function createClaim() {
  const clock = new TestClock()
  const { rows, close } = await openEmbeddedStore({ path: ':memory:' })
  onTestFinished(close)
  const { job, writes } = newJob(documentLocation, { body: Ingest.parse({ text: 'text' }) }, clock)
  const leaseUntil = new Date(clock.now() + leaseMs).toISOString()
  const running = { ...job, status: 'running' as const, leaseOwner: 'here', leaseUntil }
  await rows.atomic([{ op: 'insert', table: tables.jobs, row: running }, writes[1]!])
  const stored = async () => (await rows.get(tables.jobs, ['w', job.jobId]))!
  const parts = { rows, clock, log: noLog, jobEvents: new JobEvents(), owner: 'here', leaseMs }
  const claim = new JobClaim(parts, await stored())
  const apply = (unit: Parameters<typeof rows.atomic>[0]) => rows.atomic(unit)
  /** Returns the remaining time of the lease. */
  const leftMs = async () => Date.parse((await stored()).row.leaseUntil!) - clock.now()
  /** Waits until due renewals are stored. */
  const renewed = () => claim.advance({}, [failingCheck])
  return { claim, clock, rows, stored, apply, leftMs, renewed }
}

describe('the lease of a job', () => {
  test('is renewed three times per lease period while the work continues', async () => {
    const { clock, leftMs, renewed } = await createClaim()
    for (let n = 0; n < 5; n++) {
      clock.advance(leaseMs / 3)
      await renewed()
      expect(await leftMs()).toBe(leaseMs)
    }
  })

  test('is extended by each progress report', async () => {
    const { claim, clock, leftMs } = await createClaim()
    clock.advance(leaseMs / 4)
    expect(await leftMs()).toBe((leaseMs * 3) / 4)
    await claim.advance({ processed: 1 }, [])
    expect(await leftMs()).toBe(leaseMs)
  })

  test('ends with the job, and a later release writes nothing', async () => {
    const { claim, clock, stored, apply } = await createClaim()
    expect(await claim.succeed({ chunks: 1 }, [], apply)).toEqual({ ok: true })
    const done = await stored()
    expect(done.row).toMatchObject({ status: 'succeeded', leaseOwner: null, leaseUntil: null })
    clock.advance(leaseMs / 3)
    await claim.release()
    expect(await stored()).toEqual(done)
  })

  test('expires and has no owner after a release', async () => {
    const { claim, clock, stored } = await createClaim()
    await claim.release()
    expect((await stored()).row).toMatchObject({
      status: 'running',
      leaseOwner: null,
      leaseUntil: new Date(clock.now()).toISOString(),
    })
  })

  test('ends the work at the next renewal if another process holds it', async () => {
    const { claim, clock, rows, stored } = await createClaim()
    const { row, version } = await stored()
    const theirs = { ...row, leaseOwner: 'elsewhere' }
    await rows.atomic([{ op: 'replace', table: tables.jobs, row: theirs, version }])
    clock.advance(leaseMs / 3)
    await expect(claim.advance({ processed: 1 }, [])).rejects.toThrow(ClaimLost)
    expect([claim.isLost, claim.signal.aborted]).toEqual([true, true])
    expect((await stored()).row).toEqual(theirs)
  })
})

test('reports the index of the failed write, without the writes of the claim', async () => {
  const { claim, apply, stored } = await createClaim()
  const { key, table } = failingCheck
  const nothing = { op: 'deleteAll' as const, table: tables.jobBatches, index: 'byJob', prefix: key }
  const before = await stored()
  const writes = [nothing, { op: 'require' as const, table, key }]
  expect(await claim.advance({ processed: 1 }, writes)).toMatchObject({ ok: false, at: 1 })
  expect(await claim.succeed({ chunks: 1 }, writes, apply)).toMatchObject({ ok: false, at: 1 })
  expect(await stored()).toEqual(before)
  expect(claim.isLost).toBe(false)
})
