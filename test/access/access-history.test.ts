import { expect, onTestFinished, test } from 'vitest'
import { versionsStartSetting } from '../../src/access/versions/access-history.ts'
import {
  VersionRetention,
  type VersionRetentionDependencies,
} from '../../src/access/versions/version-retention.ts'
import type { RowStore } from '../../src/storage/rows.ts'
import { tables } from '../../src/storage/tables.ts'
import { TestClock, waitUntil } from '../harness/runtime.ts'
import type { JsonObject } from './principal-requests.ts'
import { openRestrictedWorkspace } from './restricted-workspace.ts'

const hourMs = 3_600_000
const dayMs = 24 * hourMs

async function openHistory() {
  const clock = new TestClock()
  const captured: { rows?: RowStore } = {}
  const keepRows = (store: RowStore) => {
    captured.rows = store
    return store
  }
  const place = await openRestrictedWorkspace({ clock, rows: keepRows })
  const { operator, workspace, base, knowledgeBaseId } = place
  await operator(`POST ${workspace}/principals`, { principalId: 'ada', attributes: { team: 'red' } })
  const document = { metadata: { team: 'red' }, visibleTo: ['ada'], status: 'ready' }
  const { documentId } = (await operator(`POST ${base}/documents`, document)).body
  const key = { knowledgeBaseId, documentId }
  const ask = (name: string, body: JsonObject) => operator(`POST ${workspace}/policy/${name}`, body)
  return {
    ...place,
    clock,
    ask,
    key,
    rows: captured.rows!,
    document: `${base}/documents/${documentId}`,
    /** Makes a change an hour later, and returns the time just before it. */
    async change(line: string, json?: JsonObject): Promise<string> {
      clock.advance(hourMs)
      const before = new Date(clock.now() - 1).toISOString()
      const answer = await operator(line, json)
      expect(answer.status, answer.text).toBeLessThan(300)
      return before
    },
    async sees(principalId: string, at?: string): Promise<boolean> {
      const { status, text, body } = await ask('explain', { principalId, ...key, at })
      expect(status, text).toBe(200)
      return body.visible as boolean
    },
    async viewers(at?: string): Promise<unknown[]> {
      const { items } = (await ask('viewers', { ...key, at })).body
      return (items as JsonObject[]).map(({ principalId }) => principalId)
    },
  }
}

test('the tools answer for a past time, with the policy, the principals and the document of that time', async () => {
  const { change, sees, viewers, ask, workspace, base, document, knowledgeBaseId } = await openHistory()
  const before: Record<string, string> = {}
  before.policy = await change(`PATCH ${base}`, { policyDsl: 'team = $principal.team', policyEnabled: true })
  before.attribute = await change(`PATCH ${workspace}/principals/ada`, { attributes: { team: 'blue' } })
  before.metadata = await change(`PATCH ${document}`, { metadata: { team: 'blue' } })
  before.deletion = await change(`DELETE ${workspace}/principals/ada`)
  before.builtIn = await change(`PATCH ${base}`, { policyEnabled: false })
  before.visibleTo = await change(`PATCH ${document}`, { visibleTo: ['bob'] })
  before.off = await change(`PATCH ${workspace}`, { rlacEnabled: false })

  expect(await sees('ada', before.policy)).toBe(true)
  expect(await sees('ada', before.attribute)).toBe(true)
  expect(await sees('ada', before.metadata)).toBe(false)
  expect(await sees('ada', before.deletion)).toBe(true)
  expect(await sees('ada', before.builtIn)).toBe(false)
  expect(await sees('ada', before.visibleTo)).toBe(true)
  expect(await sees('ada', before.off)).toBe(false)
  expect(await sees('ada')).toBe(true)

  expect(await viewers(before.deletion)).toEqual(['ada'])
  expect(await viewers(before.builtIn)).toEqual([])
  expect(await viewers(before.off)).toEqual(['bob'])
  const listed = async (at?: string) =>
    ((await ask('documents', { principalId: 'ada', knowledgeBaseId, at })).body.items as unknown[]).length
  expect([await listed(before.attribute), await listed(before.metadata)]).toEqual([1, 0])
  const counted = async (at?: string) =>
    ((await ask('counts', { principalId: 'ada', at })).body.items as JsonObject[])[0]
  expect(await counted(before.metadata)).toMatchObject({ rule: 'policy', visible: 0, total: 1 })
  expect(await counted()).toMatchObject({ rule: 'off', visible: 1, total: 1 })
})

test('a change that does not affect access leaves no version', async () => {
  const { change, rows, workspace, base, document } = await openHistory()
  await change(`PATCH ${base}`, { description: 'x' })
  await change(`PATCH ${workspace}`, { name: 'renamed' })
  await change(`PATCH ${workspace}/principals/ada`, { label: 'Ada' })
  await change(`PATCH ${document}`, { sourceDocId: 'x' })
  expect(await rows.count(tables.accessVersions, 'byTime', [])).toBe(0)
})

test('rejects a time in the future, and a time before the knowledge base was created', async () => {
  const { ask, key, clock } = await openHistory()
  const at = (ms: number) => ask('viewers', { ...key, at: new Date(clock.now() + ms).toISOString() })
  expect((await at(1)).body.error).toMatchObject({ message: 'at: must not be in the future' })
  expect((await at(-1)).body.error).toMatchObject({ code: 'knowledge_base_not_found' })
})

const silentLog = { debug() {}, info() {}, warn() {}, error() {} }

/** Starts the retention of the versions of a store, with a limit of one day. */
function startRetention(deps: Partial<VersionRetentionDependencies> & { rows: RowStore; clock: TestClock }) {
  const retention = new VersionRetention({ log: silentLog, retentionDays: 1, ...deps })
  onTestFinished(() => retention.close())
  retention.start()
  return retention
}

function countVersions(rows: RowStore): Promise<number> {
  return rows.count(tables.accessVersions, 'byTime', [])
}

test('old versions and versions above the maximum are deleted, and times before them are rejected', async () => {
  const { change, rows, clock, workspace, ask, key } = await openHistory()
  const times: string[] = []
  for (const team of ['a', 'b', 'c', 'd', 'e'])
    times.push(await change(`PATCH ${workspace}/principals/ada`, { attributes: { team } }))
  const limits = { rows: 3, bytes: 1_000_000 }
  const prune = async (left: number) => {
    const retention = startRetention({ rows, clock, limits })
    await waitUntil(async () => (await countVersions(rows)) === left)
    await retention.close()
  }
  const status = async (at: string) => (await ask('viewers', { ...key, at })).status
  await prune(3)
  expect(await Promise.all(times.map(status))).toEqual([400, 400, 200, 200, 200])
  clock.advance(dayMs - hourMs / 2)
  await prune(1)
  expect(await Promise.all(times.map(status))).toEqual([400, 400, 400, 400, 200])
  const { error } = (await ask('viewers', { ...key, at: times[0] })).body as { error: { message: string } }
  expect(error.message).toBe('at: the earliest recorded time is 2026-01-01T04:00:00.000Z')
})

test.each([
  ['many', { rows: 4, bytes: 1_000_000 }, 'x'],
  ['large', { rows: 100, bytes: 10_000 }, 'x'.repeat(3_000)],
])('%s new versions of a workspace displace only its own, within seconds', async (_, limits, team) => {
  const { change, rows, clock, operator, document, ask, key } = await openHistory()
  const { workspaceId } = (await operator('POST /api/v1/workspaces', { name: 'other', kind: 'mock' })).body
  const other = `/api/v1/workspaces/${workspaceId}`
  await operator(`POST ${other}/principals`, { principalId: 'eve', attributes: {} })
  const quiet = await change(`PATCH ${other}/principals/eve`, { attributes: { team: 'red' } })
  const first = await change(`PATCH ${document}`, { metadata: { team: `${team}0` } })
  startRetention({ rows, clock, limits })
  for (let n = 1; n <= 8; n++) await operator(`PATCH ${document}`, { metadata: { team: `${team}${n}` } })
  const before = await countVersions(rows)
  clock.advance(10_000)
  await waitUntil(async () => (await countVersions(rows)) < before)
  expect((await ask('viewers', { ...key, at: first })).status).toBe(400)
  const { status } = await operator(`POST ${other}/policy/counts`, { principalId: 'eve', at: quiet })
  expect(status).toBe(200)
})

test('a change copies only the facts that it changes, and of them only what policies can read', async () => {
  const { change, sees, rows, base, document } = await openHistory()
  const size = async () => (await rows.measure(tables.accessVersions, 'byTime', [])).bytes
  const long = 'x'.repeat(30_000)
  await change(`PATCH ${base}`, { policyDsl: "team >= 'xx' AND kind = 'a'", policyEnabled: true })
  await change(`PATCH ${document}`, { metadata: { team: long, kind: 'a', 'not a column': long } })
  const start = await size()
  const small = await change(`PATCH ${document}`, { sourceFilename: 'a.txt' })
  await change(`PATCH ${document}`, { visibleTo: ['bob'] })
  expect((await size()) - start).toBeLessThan(1_000)
  await change(`PATCH ${document}`, { metadata: { kind: 'b' } })
  expect((await size()) - start).toBeLessThan(6_000)
  await change(`PATCH ${document}`, { errorMessage: 'x'.repeat(10_000), sourceFilename: 'x'.repeat(4_000) })
  await change(`PATCH ${document}`, { status: 'failed' })
  expect((await size()) - start).toBeLessThan(16_000)
  expect([await sees('ada', small), await sees('ada')]).toEqual([true, false])
})

test('a version that an earlier build has stored with all fields of a document applies before newer ones', async () => {
  const { change, sees, rows, clock, workspace, document, key } = await openHistory()
  const then = new Date(clock.now()).toISOString()
  clock.advance(hourMs)
  const row = {
    ...{ workspaceId: workspace.split('/').at(-1), versionId: key.documentId, kind: 'document' },
    ...{ targetId: `${key.knowledgeBaseId}/${key.documentId}`, until: new Date(clock.now()).toISOString() },
    state: {
      metadata: {},
      visibleTo: ['bob'],
      ownerPrincipalId: null,
      sourceFilename: null,
      status: 'ready',
    },
  }
  await rows.atomic([{ op: 'insert', table: tables.accessVersions, row }])
  const later = await change(`PATCH ${document}`, { visibleTo: ['eve'] })
  expect([await sees('bob', then), await sees('ada', then), await sees('ada', later)]).toEqual([
    true,
    false,
    true,
  ])
})

test('a deleted document or knowledge base leaves no versions', async () => {
  const { change, rows, base, document, key, operator, sees } = await openHistory()
  await change(`PATCH ${document}`, { visibleTo: ['bob'], metadata: {}, sourceFilename: 'a.txt' })
  expect(await countVersions(rows)).toBe(3)
  const before = await change(`DELETE ${document}?permanently=true`)
  expect(await countVersions(rows)).toBe(0)

  await operator(`POST ${base}/documents`, { documentId: key.documentId, visibleTo: ['ada'] })
  expect(await sees('ada', before)).toBe(true)
  await change(`PATCH ${document}`, { visibleTo: ['bob'] })
  await change(`PATCH ${base}`, { policyDsl: "team = 'x'" })
  await change(`DELETE ${base}`)
  expect(await countVersions(rows)).toBe(0)
})

test('the versions of a document in the trash are deleted with a new document that gets its ID', async () => {
  const { change, rows, base, document, key, operator } = await openHistory()
  await change(`PATCH ${document}`, { visibleTo: ['bob'] })
  await change(`DELETE ${document}`)
  expect(await countVersions(rows)).toBeGreaterThan(0)
  await operator(`POST ${base}/documents`, { documentId: key.documentId, visibleTo: ['ada'] })
  await change(`DELETE ${document}?permanently=true`)
  expect(await countVersions(rows)).toBe(0)
})

test('a deletion that the store refuses is logged, and not repeated at once', async () => {
  const { change, rows, clock, workspace } = await openHistory()
  await change(`PATCH ${workspace}/principals/ada`, { attributes: {} })
  const refusing = { ...rows, atomic: async () => ({ ok: false, at: 0, reason: 'exists' }) as const }
  const warnings: string[] = []
  const log = { ...silentLog, warn: (_: object, message: string) => warnings.push(message) }
  const retention = startRetention({ rows: refusing, clock, log, limits: { rows: 0, bytes: 0 } })
  await waitUntil(() => warnings.length > 0)
  await retention.close()
  expect(warnings).toEqual(['old access versions could not be deleted'])
})

test('deleting a workspace deletes its versions, and the time since which they are complete', async () => {
  const { change, rows, clock, operator, workspace } = await openHistory()
  for (const team of ['a', 'b']) await change(`PATCH ${workspace}/principals/ada`, { attributes: { team } })
  const setting = () => rows.get(tables.settings, [versionsStartSetting(workspace.split('/').at(-1))])
  const retention = startRetention({ rows, clock, limits: { rows: 1, bytes: 1_000_000 } })
  await waitUntil(async () => (await countVersions(rows)) === 1)
  await retention.close()
  expect(await setting()).toBeDefined()
  await operator(`DELETE ${workspace}`)
  expect([await countVersions(rows), await setting()]).toEqual([0, undefined])
})
