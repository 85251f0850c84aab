import { describe, expect, onTestFinished, test } from 'vitest'
import { DecisionRecorder } from '../../src/access/decisions/decision-recorder.ts'
import { openDecisionRetention } from '../../src/access/decisions/decision-retention.ts'
import type { PolicyDecision } from '../../src/contract/policy.ts'
import { openEmbeddedStore } from '../../src/storage/open.ts'
import type { RowStore } from '../../src/storage/rows.ts'
import { tables, type WorkspaceRow } from '../../src/storage/tables.ts'
import { openRestrictedWorkspace as openWithoutAuthentication } from '../harness/rows.ts'
import { TestClock, waitUntil } from '../harness/runtime.ts'
import { storeFile } from '../harness/store-file.ts'
import { callMcpTool, codeOf, itemsOf, type Send } from './principal-requests.ts'
import {
  createAgent,
  ingest,
  missingId,
  openRestrictedWorkspace,
  type RestrictedWorkspace,
} from './restricted-workspace.ts'

const documentIn = (base: string, id: string) => `${base}/documents/${id}`

type Decision = Pick<
  PolicyDecision,
  'principalId' | 'action' | 'resourceId' | 'decision' | 'reason' | 'compiledFilterJson'
>

type Audited = Pick<RestrictedWorkspace, 'operator' | 'workspace'>

/** Returns the decisions of a workspace, oldest first. */
async function decisionsOf({ operator, workspace }: Audited, query = ''): Promise<Decision[]> {
  const response = await operator(`GET ${workspace}/audit/decisions?limit=200${query}`)
  expect(response.status).toBe(200)
  return itemsOf(response).reverse() as unknown as Decision[]
}

/** Sends a request, and returns the decisions that it caused, as text. */
async function decisionsDuring(opened: Audited, send: () => Promise<unknown>): Promise<string[]> {
  const before = (await decisionsOf(opened)).length
  await send()
  return (await decisionsOf(opened))
    .slice(before)
    .map(row => [row.principalId, row.action, row.resourceId, row.decision, row.reason].join(' '))
}

/** A workspace with a document of alice and one of bob. */
async function openWithDocuments() {
  const opened = await openRestrictedWorkspace()
  const [alice, bob] = [opened.as('alice'), opened.as('bob')]
  const own = await ingest(alice, opened.base, { text: 'The turbine report of alice.' })
  const hidden = await ingest(bob, opened.base, { text: 'The turbine report of bob.' })
  return { ...opened, alice, bob, own, hidden }
}

describe('with row-level access, a decision is recorded', () => {
  test('for each action on documents, once per request [S7.3-15]', async () => {
    const opened = await openWithDocuments()
    const { alice, base, workspace, own, hidden } = opened
    const during = (line: string, json?: unknown) => decisionsDuring(opened, () => alice(line, json))
    const filtered = (action: string, resource = '*') => `alice ${action} ${resource} filter filtered`
    expect(await during(`GET ${base}/documents`)).toEqual([filtered('list')])
    expect(await during(`GET ${documentIn(base, own)}`)).toEqual([filtered('get', own)])
    expect(await during(`GET ${documentIn(base, own)}/chunks`)).toEqual([filtered('get', own)])
    expect(await during(`GET ${base}/stats`)).toEqual([filtered('list')])
    expect(await during(`POST ${base}/search`, { text: 'turbine' })).toEqual([filtered('search')])
    expect(await during(`POST ${workspace}/search`, { text: 'turbine' })).toEqual([filtered('search')])
    expect(await during(`POST ${base}/ingest`, { text: 'Another text.' })).toEqual([
      'alice ingest * allow match',
    ])
    expect(await during(`POST ${base}/documents`, { documentId: missingId })).toEqual([
      `alice ingest ${missingId} allow match`,
    ])
    expect(await during(`POST ${base}/records`, { records: [{ id: 'r', text: 'A record.' }] })).toEqual([
      'alice ingest * allow match',
    ])
    expect(await during(`DELETE ${base}/records/r`)).toEqual(['alice delete r allow match'])
    expect(await during(`PATCH ${documentIn(base, own)}`, { metadata: { team: 'red' } })).toEqual([
      `alice update ${own} allow match`,
    ])
    const both = { documentIds: [own, hidden] }
    expect(await during(`POST ${base}/documents/bulk-delete`, both)).toEqual([
      `alice delete ${own} allow match`,
      `alice delete ${hidden} deny no_match`,
    ])
  })

  test('S7.3-policy_denied: for each refused read and change, whether the document is hidden or missing', async () => {
    const opened = await openWithDocuments()
    const { alice, base, hidden } = opened
    for (const id of [hidden, missingId]) {
      const during = (line: string, json?: unknown) => decisionsDuring(opened, () => alice(line, json))
      const path = documentIn(base, id)
      const read = [`alice get ${id} filter filtered`, `alice get ${id} deny no_match`]
      expect(await during(`GET ${path}`)).toEqual(read)
      expect(await during(`GET ${path}/chunks`)).toEqual(read)
      expect(await during(`PATCH ${path}`, { metadata: {} })).toEqual([`alice update ${id} deny no_match`])
      expect(await during(`DELETE ${path}`)).toEqual([`alice delete ${id} deny no_match`])
    }
    await opened.bob(`POST ${base}/records`, { records: [{ id: 'hidden', text: 'A record of bob.' }] })
    for (const id of ['hidden', 'missing'])
      expect(await decisionsDuring(opened, () => alice(`DELETE ${base}/records/${id}`))).toEqual([
        `alice delete ${id} deny no_match`,
      ])
    const records = [{ id: 'hidden', text: 'An overwrite.' }]
    expect(await decisionsDuring(opened, () => alice(`POST ${base}/records`, { records }))).toEqual([
      'alice ingest * deny no_match',
    ])
  })

  test('S7.3-policy_principal_required: for a request without a principal', async () => {
    const { wb, workspace, base } = await openWithoutAuthentication()
    const opened = { operator: wb.send, workspace }
    const during = (line: string, json?: unknown) => decisionsDuring(opened, () => wb.send(line, json))
    const denied = (action: string, id = '*') => ` ${action} ${id} deny no_principal`
    expect(codeOf(await wb.send(`GET ${base}/documents`))).toBe('policy_principal_required')
    expect(await during(`GET ${base}/documents`)).toEqual([denied('list')])
    expect(await during(`GET ${documentIn(base, missingId)}`)).toEqual([denied('get', missingId)])
    expect(await during(`POST ${base}/search`, { text: 'turbine' })).toEqual([denied('search')])
    expect(await during(`DELETE ${documentIn(base, missingId)}`)).toEqual([denied('delete', missingId)])
  })

  test('for the owner of the data directory, who sees everything', async () => {
    const opened = await openWithDocuments()
    const { operator, base, own } = opened
    expect(await decisionsDuring(opened, () => operator(`GET ${documentIn(base, own)}`))).toEqual([
      ` get ${own} allow operator`,
    ])
    expect(await decisionsDuring(opened, () => operator(`DELETE ${documentIn(base, own)}`))).toEqual([
      ` delete ${own} allow operator`,
    ])
  })

  test('with the filter that applied, and the fields of the contract', async () => {
    const opened = await openWithDocuments()
    const { operator, workspace, alice, base, knowledgeBaseId } = opened
    await alice(`POST ${base}/search`, { text: 'turbine' })
    const line = `GET ${workspace}/policy/audit?limit=1`
    expect((await operator(line)).body).toEqual({
      items: [
        {
          workspaceId: workspace.split('/').at(-1),
          auditDay: new Date().toISOString().slice(0, 10),
          ts: expect.stringMatching(/^\d{4}-.*Z$/),
          decisionId: expect.stringMatching(/^[0-9a-f-]{36}$/),
          principalId: 'alice',
          knowledgeBaseId,
          resourceId: '*',
          action: 'search',
          decision: 'filter',
          reason: 'filtered',
          compiledFilterJson: '{"$or":[{"visible_to":"alice"},{"visible_to":"*"}]}',
        },
      ],
      nextCursor: null,
    })
    await operator(`POST ${workspace}/principals`, { principalId: 'root', role: 'admin' })
    await opened.as('root')(`POST ${base}/search`, { text: 'turbine' })
    expect((await decisionsOf(opened)).at(-1)).toMatchObject({ compiledFilterJson: '{}' })
  })

  test('without a filter of more than 4,000 characters', async () => {
    const opened = await openWithDocuments()
    const { operator, alice, base } = opened
    const policyDsl = Array.from({ length: 400 }, (_, n) => `n<${n % 10}`).join(' OR ')
    expect((await operator(`PATCH ${base}`, { policyDsl, policyEnabled: true })).status).toBe(200)
    await alice(`GET ${base}/documents`)
    expect((await decisionsOf(opened)).at(-1)).toMatchObject({
      decision: 'filter',
      compiledFilterJson: null,
    })
  })

  test('for agents and MCP tools as for their caller', async () => {
    const opened = await openWithDocuments()
    const { alice, workspace, knowledgeBaseId } = opened
    const search = { knowledgeBaseId, text: 'turbine' }
    expect(await decisionsDuring(opened, () => callMcpTool(alice, workspace, 'search_kb', search))).toContain(
      'alice search * filter filtered',
    )
    const agent = await createAgent(opened)
    const conversation = await agent.startConversation(alice)
    agent.model.script(
      { toolCalls: [{ name: 'search_kb', arguments: { query: 'turbine report' } }] },
      { text: 'See [1].' },
    )
    expect(
      await decisionsDuring(opened, () =>
        alice(`POST ${conversation}/messages`, { content: 'What does the turbine report say?' }),
      ),
    ).toEqual(['alice search * filter filtered', 'alice get * filter filtered'])
  })

  test('once for a stream that reads again and again', async () => {
    const opened = await openWithDocuments()
    const { alice, base, workspace } = opened
    const queued = await alice(`POST ${base}/ingest?async=true`, { text: 'A queued text.' })
    const { jobId } = queued.body.job as { jobId: string }
    const headers = { accept: 'text/event-stream' }
    expect(
      await decisionsDuring(opened, () => alice(`GET ${workspace}/jobs/${jobId}/events`, undefined, headers)),
    ).toContainEqual('alice get * filter filtered')
    const reads = (await decisionsOf(opened)).filter(({ action }) => action === 'get')
    expect(reads).toHaveLength(1)
  })
})

test('without row-level access, no decision is recorded', async () => {
  const opened = await openWithDocuments()
  const { operator, workspace, alice, base, own } = opened
  await operator(`PATCH ${workspace}`, { rlacEnabled: false })
  expect(
    await decisionsDuring(opened, async () => {
      await alice(`GET ${base}/documents`)
      await alice(`POST ${base}/search`, { text: 'turbine' })
      await alice(`GET ${documentIn(base, missingId)}`)
      await alice(`DELETE ${documentIn(base, own)}`)
    }),
  ).toEqual([])
})

describe('the list of decisions', () => {
  async function sendAs({ operator, wb, workspace }: RestrictedWorkspace, key: object): Promise<Send> {
    const made = await operator(`POST ${workspace}/api-keys`, { label: 'reader', ...key })
    return (line, json) => wb.send(line, json, { authorization: `Bearer ${String(made.body.plaintext)}` })
  }

  test('needs read:audit or manage:access', async () => {
    const opened = await openWithDocuments()
    const line = `GET ${opened.workspace}/audit/decisions`
    for (const [scope, status] of [
      ['read:audit', 200],
      ['read', 200],
      ['manage:access', 200],
      ['read:content', 403],
      ['write', 403],
    ] as const)
      expect([scope, (await (await sendAs(opened, { scopes: [scope] }))(line)).status]).toEqual([
        scope,
        status,
      ])
    const contractLine = `GET ${opened.workspace}/policy/audit`
    expect((await (await sendAs(opened, { scopes: ['read:audit'] }))(contractLine)).status).toBe(403)
  })

  test('shows a reader nothing about documents that it cannot see [security rule 4]', async () => {
    const opened = await openWithDocuments()
    const { bob, alice, base, workspace, hidden, own } = opened
    await bob(`GET ${documentIn(base, hidden)}`)
    await bob(`PATCH ${documentIn(base, hidden)}`, { metadata: { secret: 'word' } })
    await bob(`POST ${base}/search`, { text: 'turbine' })
    await bob(`POST ${base}/ingest`, { text: 'A second secret.' })
    await alice(`GET ${documentIn(base, own)}`)
    const reader = await sendAs(opened, { scopes: ['read:audit'], principalId: 'alice' })
    const seen = itemsOf(await reader(`GET ${workspace}/audit/decisions?limit=200`))
    expect(JSON.stringify(seen)).not.toContain(hidden)
    const foreign = seen.filter(({ principalId }) => principalId !== 'alice')
    expect(foreign.map(({ action, compiledFilterJson }) => [action, compiledFilterJson])).toEqual([
      ['search', null],
    ])
    expect(seen.map(({ resourceId }) => resourceId)).toContain(own)
    const first = await reader(`GET ${workspace}/audit/decisions?principalId=bob&limit=1`)
    expect(itemsOf(first)).toHaveLength(1)
    expect(first.body.nextCursor).toBeNull()
    const denials = await reader(`GET ${workspace}/audit/decisions?decision=allow&principalId=bob`)
    expect(denials.body).toEqual({ items: [], nextCursor: null })
    const long = await reader(`GET ${workspace}/audit/decisions?principalId=${'x'.repeat(256)}`)
    expect(long.body.error).toMatchObject({ message: 'principalId: must be 1 to 255 characters long' })
  })

  test('is the same whether a job or a document of another principal exists or not', async () => {
    const opened = await openRestrictedWorkspace()
    const { as, workspace, base } = opened
    const alice = as('alice')
    await ingest(alice, base, { text: 'A text of alice.' })
    const reader = await sendAs(opened, { scopes: ['read'], principalId: 'alice' })
    async function decisionsAfter(jobId: string, documentId: string) {
      const before = itemsOf(await reader(`GET ${workspace}/audit/decisions?limit=200`)).length
      await alice(`GET ${workspace}/jobs`)
      await alice(`GET ${workspace}/jobs/${jobId}`)
      await alice(`GET ${documentIn(base, documentId)}`)
      await alice(`DELETE ${documentIn(base, documentId)}`)
      const all = itemsOf(await reader(`GET ${workspace}/audit/decisions?limit=200`))
      return all
        .slice(0, all.length - before)
        .map(({ action, decision, reason, resourceId }) => [
          action,
          decision,
          reason,
          resourceId === documentId ? 'the document' : resourceId,
        ])
    }
    const missing = await decisionsAfter(missingId, missingId)
    const queued = await as('bob')(`POST ${base}/ingest?async=true`, { text: 'A text of bob.' })
    const { jobId } = queued.body.job as { jobId: string }
    const { documentId } = queued.body.document as { documentId: string }
    expect(await decisionsAfter(jobId, documentId)).toEqual(missing)
    expect(missing).toHaveLength(3)
  })

  test('is complete for a principal that sees all documents', async () => {
    const opened = await openWithDocuments()
    const { bob, base, workspace, hidden, operator } = opened
    await bob(`GET ${documentIn(base, hidden)}`)
    await operator(`POST ${workspace}/principals`, { principalId: 'root', attributes: { admin: 'true' } })
    const reader = await sendAs(opened, { scopes: ['read:audit'], principalId: 'root' })
    const seen = itemsOf(await reader(`GET ${workspace}/audit/decisions?limit=200`))
    expect(seen).toEqual(itemsOf(await operator(`GET ${workspace}/audit/decisions?limit=200`)))
    expect(JSON.stringify(seen)).toContain(hidden)
  })

  test('filters, pages, and rejects a cursor of another query', async () => {
    const opened = await openWithDocuments()
    const { alice, bob, base, operator, workspace, knowledgeBaseId } = opened
    for (let n = 0; n < 3; n++) await alice(`GET ${base}/documents`)
    await bob(`DELETE ${documentIn(base, missingId)}`)
    const today = new Date().toISOString().slice(0, 10)
    expect(await decisionsOf(opened, '&principalId=alice')).toHaveLength(4)
    expect(await decisionsOf(opened, '&decision=deny')).toMatchObject([{ principalId: 'bob' }])
    expect(await decisionsOf(opened, `&knowledgeBaseId=${knowledgeBaseId}&auditDay=${today}`)).toHaveLength(6)
    expect(await decisionsOf(opened, `&knowledgeBaseId=${missingId}`)).toEqual([])
    expect(await decisionsOf(opened, '&auditDay=2020-01-01')).toEqual([])
    const list = `GET ${workspace}/audit/decisions?limit=3&principalId=alice`
    const first = await operator(list)
    expect(itemsOf(first)).toHaveLength(3)
    const rest = await operator(`${list}&cursor=${first.body.nextCursor}`)
    expect(itemsOf(rest).map(({ action }) => action)).toEqual(['ingest'])
    const other = await operator(`${list}&decision=deny&cursor=${first.body.nextCursor}`)
    expect(codeOf(other)).toBe('invalid_cursor')
    for (const query of ['limit=0', 'decision=maybe', 'auditDay=today', 'knowledgeBaseId=x'])
      expect(codeOf(await operator(`GET ${workspace}/audit/decisions?${query}`))).toBe('validation_error')
    expect(codeOf(await operator(`GET /api/v1/workspaces/${missingId}/audit/decisions`))).toBe(
      'workspace_not_found',
    )
  })
})

test('S7.3-16: a caller of another workspace gets the same response as for a workspace that does not exist', async () => {
  const opened = await openWithDocuments()
  const { operator, alice, workspace, base } = opened
  const other = await operator('POST /api/v1/workspaces', { name: 'other', kind: 'local', rlacEnabled: true })
  const responseFor = async (workspaceId: unknown, path: string) => {
    const { status, text, headers } = await alice(`GET /api/v1/workspaces/${workspaceId}${path}`)
    return [status, text.replaceAll(headers.get('x-request-id')!, '').replaceAll(String(workspaceId), 'ID')]
  }
  const basePath = base.slice(workspace.length)
  for (const path of ['', '/audit/decisions', '/jobs', basePath, `${basePath}/documents`]) {
    const response = await responseFor(other.body.workspaceId, path)
    expect(response).toEqual(await responseFor(missingId, path))
    expect(response[0]).toBe(403)
  }
})

test('deleting a workspace deletes its decisions, also those that are still queued', async () => {
  const opened = await openWithDocuments()
  const { operator, alice, base, workspace, wb } = opened
  for (let n = 0; n < 250; n++) await alice(`GET ${base}/documents`)
  expect((await operator(`DELETE ${workspace}`)).status).toBe(204)
  await wb.close()
  expect(storeFile(wb.dataDir).all('SELECT count(*) AS rows FROM policy_audit')).toEqual([{ rows: 0 }])
  expect(wb.loggedProblems).toEqual([])
})

describe('the recorder', () => {
  const workspaceId = '11111111-1111-4111-8111-111111111111'
  const draft = {
    workspaceId,
    principalId: 'alice',
    knowledgeBaseId: missingId,
    resourceId: '*',
    action: 'search',
    decision: 'filter',
    reason: 'filtered',
    compiledFilterJson: null,
  } as const

  async function openRecorder(wrap: (rows: RowStore) => RowStore = rows => rows) {
    const store = await openEmbeddedStore({ path: ':memory:' })
    await store.rows.atomic([
      { op: 'insert', table: tables.workspaces, row: { workspaceId } as WorkspaceRow },
    ])
    const sizes: number[] = []
    const rows = wrap({
      ...store.rows,
      atomic(writes) {
        sizes.push(writes.filter(({ op }) => op !== 'require').length)
        return store.rows.atomic(writes)
      },
    })
    const clock = new TestClock()
    const warnings: object[] = []
    const ignore = () => {}
    const warn = (facts: object, message: string) => void warnings.push({ ...facts, message })
    const log = { debug: ignore, info: ignore, warn, error: warn }
    const recorder = new DecisionRecorder({ rows, clock, log })
    onTestFinished(async () => {
      await recorder.close()
      await store.close()
    })
    const stored = () => store.rows.count(tables.policyAudit, 'byOrdinal', [])
    const record = (count: number) => {
      for (let n = 0; n < count; n++) recorder.record({ ...draft, resourceId: String(n) })
    }
    return { rows, clock, log, warnings, sizes, recorder, record, stored, own: store.rows }
  }

  test('stores decisions after a second, or at once when 100 wait', async () => {
    const { recorder, clock, record, stored, sizes } = await openRecorder()
    record(99)
    await new Promise(setImmediate)
    clock.advance(999)
    await new Promise(setImmediate)
    expect(await stored()).toBe(0)
    clock.advance(1)
    await waitUntil(async () => (await stored()) === 99)
    record(250)
    await waitUntil(async () => (await stored()) >= 299)
    expect(await stored()).toBe(299)
    await recorder.flushed()
    expect(sizes).toEqual([99, 100, 100, 50])
  })

  test('never makes a request wait: keeps at most 10,000 decisions during a burst, and reports the others as lost', async () => {
    let release = () => {}
    const isReleased = new Promise<void>(resolve => {
      release = resolve
    })
    const { recorder, record, stored, warnings } = await openRecorder(rows => ({
      ...rows,
      atomic: async writes => {
        await isReleased
        return rows.atomic(writes)
      },
    }))
    record(15_000)
    expect(recorder.lost).toBe(5_000)
    expect(warnings).toEqual([
      { lost: 1, lostSinceStart: 1, error: undefined, message: 'policy decisions were lost' },
    ])
    release()
    await recorder.close()
    expect(await stored()).toBe(10_000)
    expect(warnings).toMatchObject([{ lost: 1 }, { lost: 4_999, lostSinceStart: 5_000 }])
  })

  test('counts decisions as lost if the store fails, and continues', async () => {
    let isBroken = true
    const { recorder, record, stored } = await openRecorder(rows => ({
      ...rows,
      atomic: writes => (isBroken ? Promise.reject(new Error('disk full')) : rows.atomic(writes)),
    }))
    record(150)
    await recorder.flushed()
    expect(recorder.lost).toBe(150)
    isBroken = false
    record(1)
    await recorder.flushed()
    expect([await stored(), recorder.lost]).toEqual([1, 150])
  })

  test('omits decisions of a workspace that was deleted in the meantime', async () => {
    const { recorder, record, stored } = await openRecorder()
    record(2)
    recorder.record({ ...draft, workspaceId: missingId })
    await recorder.flushed()
    expect([await stored(), recorder.lost]).toEqual([2, 0])
  })

  test('its decisions are deleted after their days, and above their number', async () => {
    const opened = await openRecorder()
    const { recorder, clock, record, stored, own, sizes } = opened
    const retention = openDecisionRetention({ ...opened, decisionRetentionDays: 30, decisionsMax: 400 })
    onTestFinished(() => retention.close())
    record(10)
    await recorder.flushed()
    clock.advance(29 * 86_400_000)
    record(900)
    await recorder.flushed()
    sizes.length = 0
    retention.start()
    await waitUntil(async () => (await stored()) === 400)
    expect(Math.max(...sizes)).toBe(200)
    const [oldest] = await own.list(tables.policyAudit, { index: 'byOrdinal', prefix: [], limit: 1 })
    expect(oldest!.row.resourceId).toBe('500')
    clock.advance(30 * 86_400_000)
    await waitUntil(async () => (await stored()) === 0)
  })

  test('a flood is trimmed before the next hour', async () => {
    const opened = await openRecorder()
    const retention = openDecisionRetention({ ...opened, decisionRetentionDays: 30, decisionsMax: 1_000 })
    onTestFinished(() => retention.close())
    retention.start()
    for (let n = 0; n < 2; n++) {
      opened.record(6_000)
      await opened.recorder.flushed()
    }
    await waitUntil(async () => (await opened.stored()) <= 3_000)
  })
})
