import fc from 'fast-check'
import { describe, expect, onTestFinished, test } from 'vitest'
import { AuditRecords } from '../../src/access/audit-records.ts'
import { openAuditRetention } from '../../src/access/audit-retention.ts'
import {
  type AuditActor,
  type AuditEvent,
  AuditTrail,
  requireWritableAudit,
} from '../../src/access/audit-trail.ts'
import { RowFollower } from '../../src/access/row-follower.ts'
import { anonymousContext, verifiedContext } from '../../src/access/subject.ts'
import type { Log } from '../../src/base/log.ts'
import type { AuditQuery } from '../../src/contract/audit.ts'
import { type AuditRecord, auditActions } from '../../src/contract/audit-record.ts'
import { WbError } from '../../src/contract/errors.ts'
import { Cursors, Pager } from '../../src/storage/cursor.ts'
import { openEmbeddedStore } from '../../src/storage/open.ts'
import type { RowStore, Write } from '../../src/storage/rows.ts'
import { tables } from '../../src/storage/tables.ts'
import { LateRows } from '../fakes/late-rows.ts'
import { TestClock, waitUntil } from '../harness/runtime.ts'

const [here, there] = ['11111111-1111-4111-8111-111111111111', '22222222-2222-4222-8222-222222222222']
const dayMs = 86_400_000

interface Line {
  readonly level: string
  readonly facts: Record<string, unknown>
  readonly message: string
}

/** Opens an audit trail with its own store, and collects its log lines. `before` can wrap the store. */
async function openTrail(before: (rows: RowStore) => RowStore = rows => rows) {
  const store = await openEmbeddedStore({ path: ':memory:' })
  const rows = before(store.rows)
  const clock = new TestClock()
  const lines: Line[] = []
  const say = (level: string) => (facts: object, message: string) =>
    void lines.push({ level, facts: { ...facts }, message })
  const log: Log = { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error') }
  const trail = new AuditTrail({ rows, clock, log, replicaId: 'replica' })
  const pager = new Pager(rows, new Cursors('a key'))
  const allRecords = new AuditRecords({ rows, pager, clock, trail })
  const records = {
    list: (workspaceId: string | null, query: AuditQuery) =>
      allRecords.list(workspaceId, query, { ...nobody, signal: new AbortController().signal }),
    follow: (workspaceId: string | null, query: Pick<AuditQuery, 'action'>, after: string | null) =>
      allRecords.follow(workspaceId, query, after, nobody.auth),
  }
  onTestFinished(async () => {
    await trail.close()
    await store.close()
  })
  const storedRecords = async () =>
    (await store.rows.list(tables.audit, { index: 'byOrdinal', prefix: [], limit: 100_000 })).map(
      ({ row }) => row,
    )
  return { own: store.rows, rows, clock, lines, log, trail, records, kept: storedRecords }
}

const nobody: AuditActor = { auth: anonymousContext('apiKey'), requestId: 'r-1' }

function actor(id: string, label: string | null = null): AuditActor {
  const subject = {
    id,
    label,
    type: 'oidc' as const,
    workspaceScopes: null,
    scopes: null,
    role: null,
    principalId: id,
    keyLifetimeMaxMs: null,
  }
  return { auth: verifiedContext('oidc', subject), requestId: 'r-2' }
}

const denial: AuditEvent = { action: 'auth.api_denied', outcome: 'denied', workspaceId: here }
/** Returns a denial whose details differ from those of other numbers, so that they are not merged. */
const denialOf = (n: number): AuditEvent => ({ ...denial, details: { reason: `no ${n}` } })

/** Creates the workspaces whose audit records the tests read. */
async function createWorkspaces(rows: RowStore): Promise<void> {
  const at = '2026-01-01T00:00:00.000Z'
  await rows.atomic(
    [here, there].map(workspaceId => ({
      op: 'insert',
      table: tables.workspaces,
      row: { workspaceId, name: workspaceId, createdAt: at },
    })),
  )
}

describe('audit records', () => {
  test('S6-16: have the fields of the contract, in the store and in the log', async () => {
    const { trail, kept, lines } = await openTrail()
    trail.note(actor('alice', 'alice@example.test'), {
      action: 'kb.create',
      workspaceId: here,
      details: { knowledgeBaseId: there, label: 'Handbook' },
    })
    await trail.flushed()
    const expected = {
      action: 'kb.create',
      outcome: 'success',
      requestId: 'r-2',
      subject: { type: 'oidc', id: 'alice', label: 'alice@example.test' },
      workspaceId: here,
      details: { knowledgeBaseId: there, label: 'Handbook' },
    }
    expect(await kept()).toEqual([
      { auditId: expect.stringMatching(/^[0-9a-f-]{36}$/), at: '2026-01-01T00:00:00.000Z', ...expected },
    ])
    expect(lines).toEqual([
      { level: 'info', facts: { audit: true, ...expected }, message: 'audit kb.create success' },
    ])
  })

  test('S6-16: record callers without credentials as anonymous, and the runtime itself as system', async () => {
    const { trail, kept } = await openTrail()
    trail.note(nobody, denial)
    trail.note(null, { action: 'job.claim', outcome: 'failure' })
    await trail.flushed()
    expect(await kept()).toMatchObject([
      { subject: { type: 'anonymous', id: null, label: null }, outcome: 'denied', details: null },
      {
        subject: { type: 'system', id: 'replica', label: null },
        outcome: 'failure',
        requestId: null,
        workspaceId: null,
      },
    ])
  })

  test('S5.9-01: contain no secrets and no long texts in any field', async () => {
    const { trail, kept, lines } = await openTrail()
    const token = `wb_live_abcdefghijkl_${'s'.repeat(32)}`
    const long = 'x'.repeat(100_000)
    trail.note(actor(long, `Bearer ${token}`), {
      ...denial,
      workspaceId: token,
      details: { reason: `no: ${token}`, label: long, user_code: `token=${'u'.repeat(9)}`, count: 3 },
    })
    await trail.flushed()
    const [record] = await kept()
    expect(record).toMatchObject({
      workspaceId: null,
      subject: { id: `${'x'.repeat(499)}…`, label: 'Bearer [redacted]' },
      details: {
        reason: 'no: [redacted]',
        label: `${'x'.repeat(499)}…`,
        user_code: 'token=[redacted]',
        count: 3,
      },
    })
    expect(JSON.stringify([record, lines])).not.toMatch(/wb_live|ssss|uuuu/)
  })

  test('are logged only after their transaction is applied', async () => {
    const { trail, rows, kept, lines } = await openTrail()
    const draft = trail.draft(nobody, { action: 'api_key.create', workspaceId: here })
    expect(lines).toEqual([])
    await rows.atomic([draft.write])
    draft.announce()
    expect(await kept()).toHaveLength(1)
    expect(lines).toMatchObject([{ message: 'audit api_key.create success' }])
  })
})

describe('required audit records', () => {
  const faults: [string, (writes: readonly Write[]) => unknown][] = [
    ['the store fails', () => Promise.reject(new WbError('control_plane_unavailable', 'disk full'))],
    ['the driver throws an unexpected error', () => Promise.reject(new TypeError('boom'))],
    ['the transaction is rejected', () => Promise.resolve({ ok: false, at: 0, reason: 'exists' })],
  ]

  test.each(faults)('throw control_plane_unavailable if %s, and are not logged', async (_, atomic) => {
    const { trail, kept, lines } = await openTrail(rows => ({ ...rows, atomic }) as RowStore)
    await expect(trail.require(nobody, { action: 'auth.login' })).rejects.toMatchObject({
      code: 'control_plane_unavailable',
      message: expect.stringMatching(/^the audit record could not be written(?:: disk full)?$/),
    })
    expect([await kept(), lines]).toEqual([[], []])
  })

  test.each(faults)('fail the trial write if %s', async (_, atomic) => {
    const { trail, rows } = await openTrail(own => ({ ...own, atomic }) as RowStore)
    const { write } = trail.draft(nobody, { action: 'workspace.delete' })
    await expect(requireWritableAudit(rows, write)).rejects.toMatchObject({
      code: 'control_plane_unavailable',
    })
  })

  test('keep the hint of the store error', async () => {
    const fault = new WbError('control_plane_unavailable', 'disk full', { hint: 'Free some space.' })
    const { trail } = await openTrail(rows => ({ ...rows, atomic: () => Promise.reject(fault) }))
    await expect(trail.require(nobody, { action: 'auth.login' })).rejects.toMatchObject({
      hint: 'Free some space.',
    })
  })

  test('are stored when the promise resolves', async () => {
    const { trail, kept, lines } = await openTrail()
    await trail.require(nobody, { action: 'auth.login' })
    expect(await kept()).toMatchObject([{ action: 'auth.login' }])
    expect(lines).toHaveLength(1)
  })

  test('are not stored by a trial write', async () => {
    const { trail, rows, kept, lines } = await openTrail()
    await requireWritableAudit(rows, trail.draft(nobody, { action: 'workspace.delete' }).write)
    expect([await kept(), lines]).toEqual([[], []])
  })
})

describe('noted audit records', () => {
  test('are written in batches, in order', async () => {
    const sizes: number[] = []
    const { trail, kept } = await openTrail(rows => ({
      ...rows,
      atomic(writes) {
        sizes.push(writes.length)
        return rows.atomic(writes)
      },
    }))
    for (let n = 0; n < 500; n++) trail.note(nobody, { ...denial, details: { count: n } })
    await trail.flushed()
    expect((await kept()).map(({ details }) => details?.count)).toEqual(
      Array.from({ length: 500 }, (_, n) => n),
    )
    expect(sizes).toEqual([200, 200, 100])
  })

  test('are queued up to a limit; lost records are counted, logged, and reported once a minute', async () => {
    const { trail, kept, lines, clock } = await openTrail()
    const warnings = () =>
      lines.filter(({ level }) => level === 'warn').map(({ facts }) => [facts.lost, facts.lostSinceStart])
    for (let n = 0; n < 1_500; n++) trail.note(nobody, denialOf(n))
    expect([trail.lost, warnings()]).toEqual([500, [[1, 1]]])
    clock.advance(59_999)
    await trail.flushed()
    for (let n = 0; n < 1_001; n++) trail.note(nobody, denialOf(n))
    expect(warnings()).toEqual([[1, 1]])
    await trail.flushed()
    clock.advance(1)
    for (let n = 0; n < 1_001; n++) trail.note(nobody, denialOf(n))
    const both = [
      [1, 1],
      [501, 502],
    ]
    expect([trail.lost, warnings()]).toEqual([502, both])
    await trail.flushed()
    expect(await kept()).toHaveLength(3_000)
    expect(lines.filter(({ level }) => level === 'info')).toHaveLength(3_502)
  })

  test('include unreported losses in a warning on close', async () => {
    const { trail, lines } = await openTrail()
    for (let n = 0; n < 1_010; n++) trail.note(nobody, denialOf(n))
    await trail.close()
    await trail.close()
    expect(lines.filter(({ level }) => level === 'warn').map(({ facts }) => facts.lost)).toEqual([1, 9])
  })

  test('lose only the affected batch if the store throws or rejects the write', async () => {
    const answers = [
      () => Promise.reject(new WbError('control_plane_unavailable', 'disk full')),
      () => Promise.resolve({ ok: false as const, at: 0, reason: 'exists' as const }),
    ]
    const { trail, kept, lines } = await openTrail(rows => ({
      ...rows,
      atomic: writes => answers.shift()?.() ?? rows.atomic(writes),
    }))
    for (let n = 0; n < 500; n++) trail.note(nobody, denial)
    await trail.flushed()
    expect([trail.lost, (await kept()).length]).toEqual([400, 100])
    expect(lines.filter(({ level }) => level === 'warn')).toEqual([
      expect.objectContaining({ message: 'audit records were lost' }),
    ])
  })

  const refusals: [string, AuditEvent][] = [
    ['denials', denial],
    ['cross-origin requests', { action: 'auth.csrf_rejected', outcome: 'failure' }],
    ['failed logins', { action: 'auth.login', outcome: 'failure' }],
    ['device sign-in requests', { action: 'auth.device.authorize' }],
  ]
  test.each(refusals)(
    'S6-13: keep records of successful actions during a flood of %s',
    async (_, refused) => {
      const { trail, kept } = await openTrail()
      for (let n = 0; n < 5_000; n++) {
        trail.note(nobody, { ...refused, details: { reason: `no ${n}` } })
        if (n % 100 === 99) trail.note(actor('bootstrap'), { action: 'auth.bootstrap_use' })
      }
      await trail.flushed()
      const actions = (await kept()).map(({ action }) => action)
      expect(actions.filter(action => action === 'auth.bootstrap_use')).toHaveLength(50)
      expect(actions.filter(action => action === refused.action)).toHaveLength(1_000)
      expect(trail.lost).toBe(4_000)
    },
  )

  test('S6-04: are stored one per denial; in a flood, equal denials within 10 seconds share a record with a count', async () => {
    const { trail, kept, clock } = await openTrail()
    const counts = async () => (await kept()).map(({ details }) => details?.count)
    for (let n = 0; n < 500; n++) trail.note(nobody, denial)
    await trail.flushed()
    expect(await counts()).toEqual(Array(500).fill(undefined))
    for (let n = 0; n < 1_000; n++) trail.note(nobody, denial)
    clock.advance(10_000)
    for (let n = 0; n < 1_000; n++) trail.note(nobody, denial)
    trail.note(actor('alice'), denial)
    trail.note(nobody, { ...denial, workspaceId: there })
    clock.advance(1)
    trail.note(nobody, denial)
    await trail.flushed()
    trail.note(nobody, denial)
    await trail.flushed()
    const alone = Array(500).fill(undefined)
    expect(await counts()).toEqual([...alone, ...alone, 1_500, undefined, undefined, undefined, undefined])
    expect(trail.lost).toBe(0)
  })

  test('are never merged for successful actions, however many are queued', async () => {
    const { trail, kept } = await openTrail()
    for (let n = 0; n < 1_000; n++) trail.note(actor('alice'), { action: 'auth.bootstrap_use' })
    await trail.flushed()
    expect(await kept()).toHaveLength(1_000)
  })

  test('count every merged denial as lost if the write fails', async () => {
    const { trail } = await openTrail(rows => ({ ...rows, atomic: () => Promise.reject(new Error('boom')) }))
    for (let n = 0; n < 800; n++) trail.note(nobody, denial)
    await trail.flushed()
    expect(trail.lost).toBe(800)
  })

  test('are written on close', async () => {
    const { trail, kept } = await openTrail()
    for (let n = 0; n < 300; n++) trail.note(nobody, denial)
    await trail.close()
    expect(await kept()).toHaveLength(300)
  })

  test('do not extend a pending flush when they are added during it', async () => {
    const { trail } = await openTrail()
    let isFlooding = true
    trail.onStored(() => {
      if (isFlooding) trail.note(nobody, denial)
    })
    trail.note(nobody, denial)
    await trail.flushed()
    isFlooding = false
    expect(trail.lost).toBe(0)
  })
})

describe('audit retention', () => {
  async function openWithRetention(most: { actionsMax?: number; refusalsMax?: number } = {}) {
    const sizes: number[] = []
    const made = await openTrail(rows => ({
      ...rows,
      atomic(writes) {
        sizes.push(writes.length)
        return rows.atomic(writes)
      },
    }))
    const retention = openAuditRetention({ ...made, retentionDays: 90, ...most })
    onTestFinished(() => retention.close())
    return { ...made, retention, sizes }
  }

  test('deletes records older than the configured age at startup, then every hour', async () => {
    const { trail, clock, retention, kept } = await openWithRetention()
    await trail.require(nobody, { ...denial, details: { label: 'old' } })
    clock.advance(90 * dayMs - 3_600_000)
    await trail.require(nobody, { ...denial, details: { label: 'young' } })
    retention.start()
    clock.advance(1)
    await trail.require(nobody, { ...denial, details: { label: 'new' } })
    expect((await kept()).map(({ details }) => details?.label)).toEqual(['old', 'young', 'new'])
    clock.advance(3_600_000)
    await waitUntil(async () => (await kept()).length === 2)
    expect((await kept()).map(({ details }) => details?.label)).toEqual(['young', 'new'])
    clock.advance(90 * dayMs - 3_600_001)
    await waitUntil(async () => (await kept()).length === 1)
    await retention.close()
    clock.advance(dayMs)
    expect(await kept()).toHaveLength(1)
  })

  test('deletes the oldest records over the limit, in small batches', async () => {
    const { trail, retention, kept, sizes } = await openWithRetention({ refusalsMax: 150 })
    for (let n = 0; n < 900; n++) trail.note(nobody, { ...denial, details: { count: n } })
    await trail.flushed()
    sizes.length = 0
    retention.start()
    await waitUntil(async () => (await kept()).length <= 150)
    expect((await kept()).map(({ details }) => details?.count)).toEqual(
      Array.from({ length: 150 }, (_, n) => n + 750),
    )
    expect(Math.max(...sizes)).toBe(200)
  })

  test('applies separate limits to rejected requests and to successful actions', async () => {
    const { trail, retention, kept } = await openWithRetention({ actionsMax: 3, refusalsMax: 250 })
    for (let n = 0; n < 5; n++) {
      await trail.require(actor('alice'), { action: 'api_key.create', details: { count: n } })
      for (let m = 0; m < 100; m++) trail.note(nobody, denialOf(m))
      await trail.flushed()
    }
    retention.start()
    await waitUntil(async () => (await kept()).length <= 253)
    await retention.close()
    const all = await kept()
    expect(
      all.filter(({ action }) => action === 'api_key.create').map(({ details }) => details?.count),
    ).toEqual([2, 3, 4])
    const refused = all.filter(({ action }) => action === 'auth.api_denied')
    expect(refused.map(({ details }) => details?.reason)).toEqual(
      Array.from({ length: 250 }, (_, n) => `no ${(n + 50) % 100}`),
    )
  })

  test('trims a flood while it continues, without waiting for the next hour', async () => {
    const { trail, retention, kept } = await openWithRetention({ refusalsMax: 1_000 })
    retention.start()
    for (let round = 0; round < 21; round++) {
      for (let n = 0; n < 500; n++) trail.note(nobody, denial)
      await trail.flushed()
    }
    await waitUntil(async () => (await kept()).length <= 1_500)
  })

  test('logs a store failure and retries an hour later', async () => {
    let isBroken = true
    const { trail, clock, log, lines, own, rows, kept } = await openTrail(under => ({
      ...under,
      list: (table, query) =>
        isBroken && table.name === 'audit'
          ? Promise.reject(new WbError('control_plane_unavailable', 'no'))
          : under.list(table, query),
    }))
    await trail.require(nobody, denial)
    clock.advance(91 * dayMs)
    const retention = openAuditRetention({ rows, clock, log, trail, retentionDays: 90 })
    onTestFinished(() => retention.close())
    retention.start()
    await waitUntil(() => lines.some(({ message }) => message === 'old audit records could not be deleted'))
    expect(await own.count(tables.audit, 'byTime', [])).toBe(1)
    isBroken = false
    clock.advance(3_600_000)
    await waitUntil(async () => (await kept()).length === 0)
  })
})

describe('audit record lists', () => {
  test('return the newest records first, and every record once for any page size', async () => {
    const { rows, records, own } = await openTrail()
    await createWorkspaces(own)
    const moments = ['00', '01', '02', '03'].map(second => `2026-01-01T00:00:${second}.000Z`)
    const made = fc.record({
      at: fc.constantFrom(...moments),
      action: fc.constantFrom('kb.create', 'kb.delete'),
      workspaceId: fc.constantFrom(here, there, null),
    })
    const query = fc.record({
      place: fc.constantFrom(here, null),
      since: fc.option(fc.constantFrom(...moments, '2026-01-01T00:00:01.500Z'), { nil: undefined }),
      action: fc.option(fc.constantFrom('kb.create', 'kb.delete'), { nil: undefined }),
      limit: fc.integer({ min: 1, max: 5 }),
    })
    await fc.assert(
      fc.asyncProperty(fc.array(made, { maxLength: 20 }), query, async (all, { place, ...asked }) => {
        await rows.atomic([{ op: 'deleteAll', table: tables.audit, index: 'byTime', prefix: [] }])
        const written = all.map((fields, n) => ({ ...fields, auditId: `a${n}`, n }))
        await rows.atomic(written.map(row => ({ op: 'insert', table: tables.audit, row })))
        const expected = written
          .filter(({ workspaceId }) => place === null || workspaceId === place)
          .filter(({ at }) => asked.since === undefined || at >= asked.since)
          .filter(({ action }) => asked.action === undefined || action === asked.action)
          .sort((a, b) => b.at.localeCompare(a.at) || b.n - a.n)
        const found: string[] = []
        let cursor: string | undefined
        do {
          const page = await records.list(place, { ...asked, cursor } as Parameters<typeof records.list>[1])
          expect(page.items.length).toBeLessThanOrEqual(asked.limit)
          found.push(...page.items.map(({ auditId }) => auditId))
          cursor = page.nextCursor ?? undefined
        } while (cursor !== undefined)
        expect(found).toEqual(expected.map(({ auditId }) => auditId))
      }),
      { numRuns: 150 },
    )
  })

  test('accept a cursor only for the list that created it', async () => {
    const { trail, records, own } = await openTrail()
    await createWorkspaces(own)
    for (const workspaceId of [here, there, here, there])
      await trail.require(nobody, { action: 'kb.create', workspaceId })
    const since = '2020-01-01T00:00:00.000Z'
    const lists: [string | null, { action?: 'kb.create'; since?: string }][] = [
      [here, {}],
      [there, {}],
      [null, {}],
      [here, { action: 'kb.create' }],
      [null, { action: 'kb.create' }],
      [here, { since }],
      [here, { since: '2020-01-01T00:00:00.001Z' }],
      [here, { action: 'kb.create', since }],
    ]
    const cursors = await Promise.all(
      lists.map(async ([place, query]) => (await records.list(place, { ...query, limit: 1 })).nextCursor!),
    )
    for (const [at, [place, query]] of lists.entries())
      for (const [of, cursor] of cursors.entries()) {
        const page = records.list(place, { ...query, limit: 1, cursor })
        if (of === at) expect((await page).items).toHaveLength(1)
        else await expect(page).rejects.toMatchObject({ code: 'invalid_cursor' })
      }
  })

  test('include records noted just before the request', async () => {
    const { trail, records, own } = await openTrail()
    await createWorkspaces(own)
    trail.note(nobody, denial)
    expect((await records.list(here, { limit: 9 })).items).toHaveLength(1)
  })

  test('reject an unknown workspace, as does the stream', async () => {
    const { records } = await openTrail()
    const missing = { code: 'workspace_not_found' }
    await expect(records.list(here, { limit: 9 })).rejects.toMatchObject(missing)
    await expect(records.follow(here, {}, null)).rejects.toMatchObject(missing)
  })
})

describe('audit streams', () => {
  async function openWithRecords(before?: (rows: RowStore) => RowStore) {
    const made = await openTrail(before)
    await createWorkspaces(made.own)
    const say = (count: number, more: Partial<AuditEvent> = {}) =>
      made.trail.require(nobody, { ...denial, details: { count }, ...more })
    return { ...made, say }
  }
  const numberOf = (event: IteratorResult<{ data: object }>) =>
    event.done ? undefined : (event.value.data as AuditRecord).details?.count
  async function takeEvents(stream: AsyncIterable<{ data: object }>, many: number): Promise<unknown[]> {
    const found: unknown[] = []
    const events = stream[Symbol.asyncIterator]()
    while (found.length < many) found.push(numberOf(await events.next()))
    return found
  }

  test('start with records noted after the stream was opened', async () => {
    const { trail, records, say } = await openWithRecords()
    await say(1)
    trail.note(nobody, { ...denial, details: { count: 2 } })
    const stream = await records.follow(here, {}, null)
    await say(3)
    trail.note(nobody, { ...denial, details: { count: 4 } })
    expect(await takeEvents(stream, 2)).toEqual([3, 4])
  })

  test('send each record as an event with the ID of the record', async () => {
    const { records, say, kept } = await openWithRecords()
    const stream = await records.follow(null, {}, null)
    await say(1)
    const { value } = await stream[Symbol.asyncIterator]().next()
    const [record] = await kept()
    expect(value).toEqual({ id: record!.auditId, event: 'audit', data: record })
  })

  test('resume after the given record; an unknown ID or one of another workspace restarts from the oldest record', async () => {
    const { records, say, kept } = await openWithRecords()
    for (const n of [1, 2, 3]) await say(n)
    await say(4, { workspaceId: there })
    const [first, , third, elsewhere] = await kept()
    const resumed = async (id: string, many: number, place: string | null = here) =>
      takeEvents(await records.follow(place, {}, id), many)
    expect(await resumed(first!.auditId, 2)).toEqual([2, 3])
    expect(await resumed(third!.auditId, 1, null)).toEqual([4])
    expect(await resumed('00000000-0000-4000-8000-000000000000', 3)).toEqual([1, 2, 3])
    expect(await resumed('no id at all', 4, null)).toEqual([1, 2, 3, 4])
    expect(await resumed(elsewhere!.auditId, 3)).toEqual([1, 2, 3])
  })

  test('filter by workspace and action', async () => {
    const { records, say } = await openWithRecords()
    const streams = await Promise.all([
      records.follow(here, {}, null),
      records.follow(here, { action: 'kb.create' }, null),
      records.follow(null, { action: 'kb.create' }, null),
    ])
    await say(1)
    await say(2, { action: 'kb.create' })
    await say(3, { action: 'kb.create', workspaceId: there })
    await say(4)
    await say(5, { action: 'kb.create' })
    expect(await Promise.all(streams.map((stream, n) => takeEvents(stream, [4, 2, 3][n]!)))).toEqual([
      [1, 2, 4, 5],
      [2, 5],
      [2, 3, 5],
    ])
  })

  test('skip many records that do not match without blocking the event loop', async () => {
    const { trail, records, say, kept } = await openWithRecords()
    await say(0)
    for (let n = 0; n < 900; n++) trail.note(nobody, denial)
    await trail.flushed()
    await say(1, { action: 'kb.create' })
    let turns = 0
    const count = setInterval(() => turns++, 0)
    const stream = await records.follow(here, { action: 'kb.create' }, (await kept())[0]!.auditId)
    expect(await takeEvents(stream, 1)).toEqual([1])
    clearInterval(count)
    expect(turns).toBeGreaterThan(0)
  })

  test('wake at once for records of this process, and within half a second for records of other processes', async () => {
    const { records, say, clock, own, trail } = await openWithRecords()
    const events = (await records.follow(here, {}, null))[Symbol.asyncIterator]()
    const soon = events.next()
    await new Promise(setImmediate)
    await say(1)
    expect(numberOf(await soon)).toBe(1)
    const later = events.next()
    const { write } = trail.draft(nobody, { ...denial, details: { count: 2 } })
    await own.atomic([write])
    clock.advance(500)
    expect(numberOf(await later)).toBe(2)
  })

  test('return a record that is written during a store read without waiting for the next poll', async () => {
    let during: (() => Promise<unknown>) | undefined
    const { records, trail } = await openWithRecords(rows => ({
      ...rows,
      feed: {
        ...rows.feed,
        async read(table, query) {
          const found = await rows.feed.read(table, query)
          const run = during
          during = undefined
          await run?.()
          return found
        },
      },
    }))
    const events = (await records.follow(here, {}, null))[Symbol.asyncIterator]()
    during = () => trail.require(nobody, { ...denial, details: { count: 1 } })
    expect(numberOf(await events.next())).toBe(1)
  })

  test('stop reading the store after they are closed, whether or not a read is pending', async () => {
    let reads = 0
    const { records, clock, say } = await openWithRecords(rows => ({
      ...rows,
      feed: {
        ...rows.feed,
        read(table, query) {
          reads++
          return rows.feed.read(table, query)
        },
      },
    }))
    for (const isWaiting of [true, false]) {
      const events = (await records.follow(here, {}, null))[Symbol.asyncIterator]()
      const waiting = isWaiting ? events.next() : undefined
      await new Promise(setImmediate)
      await events.return!()
      expect(await (waiting ?? events.next())).toEqual({ done: true, value: undefined })
      reads = 0
      await say(1)
      clock.advance(5_000)
      await new Promise(setImmediate)
      expect([reads, await events.next()]).toEqual([0, { done: true, value: undefined }])
    }
  })

  test('contain records of a transaction that becomes visible after later ones', async () => {
    let late: LateRows | undefined
    const { records, trail, clock, own } = await openWithRecords(rows => {
      late = new LateRows(rows)
      return late
    })
    const write = (count: number) => trail.draft(nobody, { ...denial, details: { count } }).write
    const stream = await records.follow(here, {}, null)
    const release = late!.holdNext()
    const slow = late!.atomic([write(1)])
    await late!.atomic([write(2)])
    expect((await own.list(tables.audit, { index: 'byOrdinal', prefix: [], limit: 9 })).length).toBe(1)
    const found = takeEvents(stream, 3)
    await new Promise(setImmediate)
    release()
    await slow
    await late!.atomic([write(3)])
    clock.advance(500)
    expect(await found).toEqual([1, 2, 3])
  })

  test('cancel every wait after an event, an error, or a close', async () => {
    let waiting = 0
    let wake = () => {}
    const pages = [[], [{ row: 'a', version: 1, ordinal: 1, text: '"a"' }], new Error('no disk'), []]
    const follower = new RowFollower<string>({
      from: '0',
      async read() {
        const page = pages.shift()!
        if (page instanceof Error) throw page
        return { rows: page, position: '1' }
      },
      select: () => true,
      toEvent: id => ({ id, event: 'row', data: {} }),
      wait(run) {
        waiting++
        wake = run
        return () => waiting--
      },
    })
    const first = follower.next()
    await new Promise(setImmediate)
    expect(waiting).toBe(1)
    wake()
    expect([(await first).value, waiting]).toEqual([{ id: 'a', event: 'row', data: {} }, 0])
    await expect(follower.next()).rejects.toThrow('no disk')
    expect(waiting).toBe(0)
    const last = follower.next()
    await follower.return()
    expect([(await last).done, waiting]).toEqual([true, 0])
  })

  test('read the next page only on demand', async () => {
    const limits: number[] = []
    const { records, trail, clock } = await openWithRecords(rows => ({
      ...rows,
      feed: {
        ...rows.feed,
        read(table, query) {
          limits.push(query.limit)
          return rows.feed.read(table, query)
        },
      },
    }))
    const events = (await records.follow(here, {}, null))[Symbol.asyncIterator]()
    for (let n = 0; n < 900; n++) trail.note(nobody, denial)
    await trail.flushed()
    clock.advance(60_000)
    expect(limits).toEqual([])
    for (let n = 0; n < 100; n++) await events.next()
    clock.advance(60_000)
    await new Promise(setImmediate)
    expect(limits).toEqual([100])
  })

  test('accept every action of the contract, as do lists', async () => {
    const { records, trail } = await openWithRecords()
    const stream = await records.follow(null, {}, null)
    for (const action of auditActions) await trail.require(null, { action })
    const listed = (await records.list(null, { limit: 200 })).items.map(({ action }) => action)
    expect(listed.reverse()).toEqual([...auditActions])
    const events = stream[Symbol.asyncIterator]()
    for (const action of auditActions)
      expect(((await events.next()).value.data as AuditRecord).action).toBe(action)
  })
})
