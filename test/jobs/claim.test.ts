import { describe, expect, onTestFinished, test } from 'vitest'
import { Ingest } from '../../src/contract/documents.ts'
import { newJob } from '../../src/jobs/changes.ts'
import { Claim, ClaimLost } from '../../src/jobs/claim.ts'
import { JobEvents } from '../../src/jobs/job-events.ts'
import { openEmbedded } from '../../src/storage/open.ts'
import { tables } from '../../src/storage/tables.ts'
import { TestClock } from '../harness/runtime.ts'

const leaseMs = 60_000
const place = { workspaceId: 'w', knowledgeBaseId: 'k', documentId: 'd' }
const silent = { debug() {}, info() {}, warn() {}, error() {} }
/** A row that is not there. */
const absent = { op: 'require' as const, table: tables.workspaces, key: ['nowhere'] }

/** A job that somebody here works on, and the time. */
async function claimed() {
  const clock = new TestClock()
  const { rows, close } = await openEmbedded({ path: ':memory:' })
  onTestFinished(close)
  const { job, writes } = newJob(place, Ingest.parse({ text: 'text' }), clock)
  const leaseUntil = new Date(clock.now() + leaseMs).toISOString()
  const running = { ...job, status: 'running' as const, leaseOwner: 'here', leaseUntil }
  await rows.atomic([{ op: 'insert', table: tables.jobs, row: running }, writes[1]!])
  const stored = async () => (await rows.get(tables.jobs, ['w', job.jobId]))!
  const parts = { rows, clock, log: silent, jobEvents: new JobEvents(), owner: 'here', leaseMs }
  const claim = new Claim(parts, await stored())
  const apply = (unit: Parameters<typeof rows.atomic>[0]) => rows.atomic(unit)
  /** How long the lease still runs. */
  const leftMs = async () => Date.parse((await stored()).row.leaseUntil!) - clock.now()
  /** Renewals that are due have been made. */
  const renewed = () => claim.advance({}, [absent])
  return { claim, clock, rows, stored, apply, leftMs, renewed }
}

describe('the lease of a job', () => {
  test('is renewed three times in its length, for as long as the work goes on', async () => {
    const { clock, leftMs, renewed } = await claimed()
    for (let n = 0; n < 5; n++) {
      clock.advance(leaseMs / 3)
      await renewed()
      expect(await leftMs()).toBe(leaseMs)
    }
  })

  test('begins anew with each report', async () => {
    const { claim, clock, leftMs } = await claimed()
    clock.advance(leaseMs / 4)
    expect(await leftMs()).toBe((leaseMs * 3) / 4)
    await claim.advance({ processed: 1 }, [])
    expect(await leftMs()).toBe(leaseMs)
  })

  test('is over with the job: nothing is written to what has ended', async () => {
    const { claim, clock, stored, apply } = await claimed()
    expect(await claim.succeed({ chunks: 1 }, [], apply)).toEqual({ ok: true })
    const done = await stored()
    expect(done.row).toMatchObject({ status: 'succeeded', leaseOwner: null, leaseUntil: null })
    clock.advance(leaseMs / 3)
    await claim.release()
    expect(await stored()).toEqual(done)
  })

  test('that is given back has lapsed, and is nobody’s', async () => {
    const { claim, clock, stored } = await claimed()
    await claim.release()
    expect((await stored()).row).toMatchObject({
      status: 'running',
      leaseOwner: null,
      leaseUntil: new Date(clock.now()).toISOString(),
    })
  })

  test('that somebody else has since ends the work at its next renewal', async () => {
    const { claim, clock, rows, stored } = await claimed()
    const { row, version } = await stored()
    const theirs = { ...row, leaseOwner: 'elsewhere' }
    await rows.atomic([{ op: 'replace', table: tables.jobs, row: theirs, version }])
    clock.advance(leaseMs / 3)
    await expect(claim.advance({ processed: 1 }, [])).rejects.toThrow(ClaimLost)
    expect([claim.isLost, claim.signal.aborted]).toEqual([true, true])
    expect((await stored()).row).toEqual(theirs)
  })
})

test('of the writes that go with a job, the one that is refused is counted from 0', async () => {
  const { claim, apply, stored } = await claimed()
  const { key, table } = absent
  const nothing = { op: 'deleteAll' as const, table: tables.jobBatches, index: 'byJob', prefix: key }
  const before = await stored()
  const writes = [nothing, { op: 'require' as const, table, key }]
  expect(await claim.advance({ processed: 1 }, writes)).toMatchObject({ ok: false, at: 1 })
  expect(await claim.succeed({ chunks: 1 }, writes, apply)).toMatchObject({ ok: false, at: 1 })
  expect(await stored()).toEqual(before)
  expect(claim.isLost).toBe(false)
})
