import { describe, expect, test } from 'vitest'
import { decideAccess } from '../../src/access/authorize.ts'
import { verifiedContext } from '../../src/access/subject.ts'
import { knownKeys } from '../../src/config/known-keys.ts'
import { configSchema } from '../../src/config/schema.ts'
import type { AuditRecord } from '../../src/contract/audit-record.ts'
import { WbError } from '../../src/contract/errors.ts'
import { api } from '../../src/contract/index.ts'
import type { Route } from '../../src/contract/route.ts'
import type { Scope } from '../../src/contract/scopes.ts'
import type { RowStore, Write } from '../../src/storage/rows.ts'
import { openSignInFixture as signInStage } from '../auth/session/sign-in-fixture.ts'
import {
  open,
  TestClock,
  type TestResponse,
  type TestRuntime,
  type TestRuntimeOptions,
  waitUntil,
} from '../harness/runtime.ts'

const bootstrap = 'the-token-of-the-operator-of-these-tests'
const all = '/api/v1/workspaces'

/** Opens a runtime that requires credentials, with functions to send requests as a key or as the operator. */
async function openWithKeys(options: TestRuntimeOptions = {}) {
  const opened = await open({
    ...options,
    environment: { FIRST_TOKEN: bootstrap },
    config: {
      auth: { mode: 'apiKey', anonymousPolicy: 'reject', bootstrapTokenRef: 'env:FIRST_TOKEN' },
      ...options.config,
    },
  })
  const as = (token: string | null, line: string, json?: unknown, headers = {}) =>
    opened.send(line, json, { ...(token !== null && { authorization: `Bearer ${token}` }), ...headers })
  const operator = (line: string, json?: unknown) => opened.sendAsOperator(line, json)
  const { body } = await operator(`POST ${all}`, { name: 'first' })
  const workspace = String(body.workspaceId)
  const mint = async (grant: object) =>
    String((await operator(`POST ${all}/${workspace}/api-keys`, { label: 'key', ...grant })).body.plaintext)
  return { ...opened, as, operator, workspace, mint, trail: () => readTrail(opened) }
}

/** Returns all audit records, oldest first. */
async function readTrail({ sendAsOperator }: Pick<TestRuntime, 'sendAsOperator'>): Promise<AuditRecord[]> {
  const found: AuditRecord[] = []
  let cursor = ''
  do {
    const { body } = await sendAsOperator(`GET /api/v1/audit?limit=200${cursor && `&cursor=${cursor}`}`)
    found.push(...(body.items as AuditRecord[]))
    cursor = String(body.nextCursor ?? '')
  } while (cursor !== '')
  return found.reverse()
}

function codeOf({ body }: TestResponse): unknown {
  return (body.error as { code: string } | undefined)?.code
}

describe('audit records of requests', () => {
  test('S6-08 S6-16: record the actor, workspace and object of changes to workspaces, keys, knowledge bases and documents', async () => {
    const wb = await openWithKeys()
    const token = await wb.mint({ label: 'admin', role: 'admin' })
    const before = (await wb.trail()).length
    const place = `${all}/${wb.workspace}`
    const key = (await wb.as(token, `POST ${place}/api-keys`, { label: 'ci', scopes: ['write:kb', 'read'] }))
      .body.key as { keyId: string }
    const rotated = (await wb.as(token, `POST ${place}/api-keys/${key.keyId}/rotate`)).body.key as {
      keyId: string
    }
    await wb.as(token, `DELETE ${place}/api-keys/${rotated.keyId}`)
    const base = (await wb.as(token, `POST ${place}/knowledge-bases`, { name: 'handbook' })).body
    const knowledgeBaseId = String(base.knowledgeBaseId)
    const documents = `${place}/knowledge-bases/${knowledgeBaseId}/documents`
    const eventIds: string[] = []
    for (let n = 0; n < 4; n++)
      eventIds.push(String((await wb.as(token, `POST ${documents}`, {})).body.documentId))
    await wb.as(token, `DELETE ${documents}/${eventIds[0]}`)
    await wb.as(token, `POST ${documents}/bulk-delete`, { documentIds: [...eventIds, wb.workspace] })
    await wb.as(token, `DELETE ${place}/knowledge-bases/${knowledgeBaseId}`)
    const sent = await wb.as(token, `DELETE ${place}`, undefined, { 'x-request-id': 'the-last-one' })
    expect(sent.status, sent.text).toBe(204)

    const records = (await wb.trail()).slice(before)
    expect(records.map(({ action, details }) => [action, details])).toEqual([
      ['api_key.create', { keyId: key.keyId, label: 'ci', scopes: 'read,write:kb' }],
      [
        'api_key.rotate',
        expect.objectContaining({ keyId: rotated.keyId, label: 'ci', scopes: 'read,write:kb' }),
      ],
      ['api_key.revoke', { keyId: rotated.keyId, label: 'ci' }],
      ['kb.create', { knowledgeBaseId, label: 'handbook' }],
      ['document.delete', { knowledgeBaseId, documentId: eventIds[0], count: 1 }],
      ['document.delete', { knowledgeBaseId, count: 3 }],
      ['kb.delete', { knowledgeBaseId, label: 'handbook' }],
      ['workspace.delete', { label: 'first' }],
    ])
    for (const record of records)
      expect(record).toMatchObject({
        outcome: 'success',
        workspaceId: wb.workspace,
        subject: { type: 'apiKey', label: 'admin', id: expect.any(String) },
        requestId: expect.any(String),
      })
    expect(records.at(-1)!.requestId).toBe('the-last-one')
  })

  test('S6-09: list the changed fields without values for access and storage settings', async () => {
    const wb = await openWithKeys()
    const admin = await wb.mint({ label: 'admin', role: 'admin' })
    const place = `${all}/${wb.workspace}`
    const { knowledgeBaseId } = (await wb.as(admin, `POST ${place}/knowledge-bases`, { name: 'handbook' }))
      .body
    const base = `${place}/knowledge-bases/${knowledgeBaseId}`
    const before = (await wb.trail()).length
    const change = async (path: string, json: object) =>
      expect((await wb.as(admin, `PATCH ${path}`, json)).status).toBe(200)
    const url = 'https://store.example.com'
    await change(place, { name: 'renamed', rlacEnabled: true })
    await change(place, { rlacEnabled: true, credentials: {}, url: null })
    await change(place, { url, keyspace: 'ks', credentials: { token: 'env:STORE_TOKEN' } })
    await change(place, { credentials: { token: 'env:STORE_TOKEN' } })
    await change(base, { policyDsl: "team = 'blue'", policyEnabled: true, description: 'x' })
    await change(base, { policyEnabled: true, description: 'y' })
    await change(base, { policyDsl: null })
    const of = { knowledgeBaseId, label: 'handbook' }
    const records = (await wb.trail()).slice(before)
    expect(records.map(({ action, details }) => [action, details])).toEqual([
      ['workspace.update', { label: 'renamed', reason: 'changed rlacEnabled' }],
      ['workspace.update', { label: 'renamed', reason: 'changed url, keyspace, credentials' }],
      ['kb.update', { ...of, reason: 'changed policyDsl, policyEnabled' }],
      ['kb.update', { ...of, reason: 'changed policyDsl' }],
    ])
    for (const record of records)
      expect(record).toMatchObject({
        outcome: 'success',
        workspaceId: wb.workspace,
        subject: { label: 'admin' },
      })
  })

  test('S6-08: include workspace creation in the trail of that workspace', async () => {
    const wb = await openWithKeys()
    const { body } = await wb.as(bootstrap, `POST ${all}`, { name: 'second' })
    const { items } = (await wb.operator(`GET ${all}/${body.workspaceId}/audit`)).body
    expect(items).toMatchObject([
      {
        action: 'workspace.create',
        subject: { type: 'bootstrap', id: 'bootstrap' },
        workspaceId: body.workspaceId,
        details: { label: 'second' },
      },
    ])
  })

  test('omit successful actions for requests that fail', async () => {
    const wb = await openWithKeys()
    const before = (await wb.trail()).length
    const place = `${all}/${wb.workspace}`
    const missing = '00000000-0000-4000-8000-000000000000'
    for (const [line, json] of [
      [`POST ${all}`, { name: 'first' }],
      [`POST ${place}/api-keys`, { label: '' }],
      [`DELETE ${place}/api-keys/${missing}`],
      [`DELETE ${place}/knowledge-bases/${missing}`],
      [`DELETE ${all}/${missing}`],
    ] as const)
      expect((await wb.operator(line, json)).status).toBeGreaterThanOrEqual(400)
    expect((await wb.trail()).length).toBe(before)
  })

  test('S6-04 S6-05: record each rejected request with its scheme or its missing scope', async () => {
    const wb = await openWithKeys()
    const viewer = await wb.mint({ label: 'viewer', role: 'viewer' })
    const ingester = await wb.mint({ label: 'ingester', scopes: ['write:ingest'] })
    const second = (await wb.operator(`POST ${all}`, { name: 'second' })).body.workspaceId
    const place = `${all}/${wb.workspace}`
    const before = (await wb.trail()).length
    const basic = { authorization: `Basic ${Buffer.from('a:b').toString('base64')}` }
    await wb.as(null, `GET ${all}`)
    await wb.as(`wb_live_${'a'.repeat(12)}_${'b'.repeat(32)}`, `GET ${place}`)
    await wb.as(null, `GET ${place}`, undefined, basic)
    await wb.as(null, 'GET /api/v1/audit')
    await wb.as(viewer, `POST ${place}/knowledge-bases`, { name: 'x' })
    await wb.as(ingester, `GET ${place}/audit`)
    await wb.as(viewer, `PATCH ${place}`, { name: 'x' })
    await wb.as(viewer, `DELETE ${place}`)
    await wb.as(viewer, `GET ${all}/${second}`)
    await wb.as(viewer, 'GET /api/v1/audit')
    const records = (await wb.trail()).slice(before)
    expect(new Set(records.map(({ action, outcome }) => `${action} ${outcome}`))).toEqual(
      new Set(['auth.api_denied denied']),
    )
    const unsaid = { reason: expect.any(String) }
    expect(
      records.map(({ subject, workspaceId, details }) => [
        subject?.label ?? subject?.type,
        workspaceId,
        details,
      ]),
    ).toEqual([
      ['anonymous', null, { scheme: 'none', ...unsaid }],
      ['anonymous', null, { scheme: 'bearer', ...unsaid }],
      ['anonymous', null, { scheme: 'other', ...unsaid }],
      ['anonymous', null, { scheme: 'none', ...unsaid }],
      ['viewer', wb.workspace, { requiredScope: 'write:kb', ...unsaid }],
      ['ingester', wb.workspace, { requiredScope: 'read:audit', ...unsaid }],
      ['viewer', wb.workspace, { requiredScope: 'write', ...unsaid }],
      ['viewer', wb.workspace, { requiredScope: 'manage:workspace', ...unsaid }],
      // Readers of the other workspace's trail must not learn the names of its keys.
      ['apiKey', second, unsaid],
      ['viewer', null, unsaid],
    ])
  })

  test('S6-13: record each use of the bootstrap token', async () => {
    const wb = await openWithKeys()
    for (let n = 0; n < 3; n++) await wb.as(bootstrap, `GET ${all}`)
    const uses = (await wb.trail()).filter(({ action }) => action === 'auth.bootstrap_use')
    expect(uses).toHaveLength(3)
    for (const use of uses)
      expect(use).toMatchObject({
        outcome: 'success',
        subject: { type: 'bootstrap' },
        details: { scheme: 'bootstrap' },
      })
    expect(new Set(uses.map(({ requestId }) => requestId)).size).toBe(3)
  })

  test('S6-02 S6-03: record both steps of a device sign-in', async () => {
    const { opened } = await signInStage({ client: { scopes: ['openid'] } })
    const begun = await opened.send('POST /auth/device/authorize')
    expect(begun.status, begun.text).toBe(200)
    await opened.send('POST /auth/device/token', { device_code: 'never given' })
    const records = await readTrail(opened)
    expect(records).toMatchObject([
      { action: 'auth.device.authorize', outcome: 'success', details: { user_code: begun.body.user_code } },
      { action: 'auth.device.token', outcome: 'failure', details: { reason: expect.any(String) } },
    ])
    expect(JSON.stringify(records)).not.toContain(begun.body.device_code)
  })

  test('S6-15: omit changes to documents, records, names and descriptions', async () => {
    const wb = await openWithKeys()
    const editor = await wb.mint({ role: 'editor' })
    const place = `${all}/${wb.workspace}`
    const { body } = await wb.as(editor, `POST ${place}/knowledge-bases`, { name: 'handbook' })
    const base = `${place}/knowledge-bases/${body.knowledgeBaseId}`
    const before = (await wb.trail()).length
    const done = async (line: string, json?: unknown) => {
      const sent = await wb.as(editor, line, json)
      expect(sent.status, `${line}: ${sent.text}`).toBeLessThan(300)
      return sent.body
    }
    const ingested = await done(`POST ${base}/ingest`, { text: 'one' })
    const { documentId } = ingested.document as { documentId: string }
    const lines = '{"text":"two"}\n{"text":"three"}\n'
    const batch = await wb.runtime.fetch(
      new Request(`http://localhost${base}/ingest/batch`, {
        method: 'POST',
        body: lines,
        headers: { authorization: `Bearer ${editor}`, 'content-type': 'application/x-ndjson' },
      }),
    )
    expect((await batch.text()).trim().split('\n')).toHaveLength(2)
    await done(`POST ${base}/documents`, {})
    await done(`PATCH ${base}/documents/${documentId}`, { metadata: { a: 1 } })
    await done(`POST ${base}/records`, { records: [{ id: 'r', text: 'four' }] })
    await done(`DELETE ${base}/records/r`)
    await done(`PATCH ${base}`, { description: 'x' })
    await done(`PATCH ${place}`, { name: 'renamed' })
    await done(`POST ${base}/search`, { text: 'one' })
    await done(`GET ${base}/documents`)
    expect((await wb.trail()).slice(before)).toEqual([])
  })

  test('S6-14: omit rate-limited requests', async () => {
    const wb = await openWithKeys({ config: { runtime: { rateLimit: { capacity: 3 } } } })
    const before = (await wb.trail()).length
    const peer = { encrypted: false, address: '203.0.113.7' }
    const statuses: number[] = []
    for (let n = 0; n < 9; n++) {
      const headers = { host: 'localhost', authorization: 'Bearer nothing' }
      const request = new Request(`http://localhost${all}`, { headers })
      statuses.push((await wb.runtime.app.fetch(request, { peer })).status)
    }
    expect(statuses).toEqual([401, 401, 401, 429, 429, 429, 429, 429, 429])
    const records = (await wb.trail()).slice(before)
    expect(records.map(({ action }) => action)).toEqual(Array(3).fill('auth.api_denied'))
  })
})

describe('requests whose audit record cannot be written', () => {
  /** Wraps a store so that it rejects audit records while `state.isBroken` is set. */
  function createFailingAudit(fault: () => Error) {
    const state = { isBroken: false }
    const isRecord = (write: Write) => write.op === 'insert' && write.table.name === 'audit'
    const rows = (store: RowStore): RowStore => ({
      ...store,
      atomic: writes =>
        state.isBroken && writes.some(isRecord) ? Promise.reject(fault()) : store.atomic(writes),
    })
    return { state, rows }
  }
  const full = () => new WbError('control_plane_unavailable', 'the disk of the data directory is full')

  test('neither create nor change keys', async () => {
    const { state, rows } = createFailingAudit(full)
    const wb = await openWithKeys({ rows })
    const keys = `${all}/${wb.workspace}/api-keys`
    const token = await wb.mint({ role: 'admin' })
    const listed = async () => (await wb.operator(`GET ${keys}`)).body.items as { keyId: string }[]
    const before = await listed()
    state.isBroken = true
    const refused = [
      await wb.operator(`POST ${keys}`, { label: 'x' }),
      await wb.operator(`POST ${keys}/${before[0]!.keyId}/rotate`),
      await wb.operator(`DELETE ${keys}/${before[0]!.keyId}`),
      await wb.operator(`POST ${all}`, { name: 'second' }),
    ]
    expect(refused.map(codeOf)).toEqual(Array(4).fill('control_plane_unavailable'))
    expect(refused.map(({ status }) => status)).toEqual(Array(4).fill(503))
    state.isBroken = false
    const { items } = (await wb.operator(`GET ${all}`)).body
    expect(items).toMatchObject([{ name: 'first' }])
    expect(await listed()).toMatchObject(
      before.map(({ keyId }) => ({ keyId, revokedAt: null, expiresAt: null })),
    )
    expect((await wb.as(token, `GET ${all}`)).status).toBe(200)
  })

  test.each([
    ['fails', full],
    ['throws an unexpected error', () => new TypeError('boom')],
  ])('delete neither a workspace nor its contents when the store %s', async (_, fault) => {
    const { state, rows } = createFailingAudit(fault)
    const wb = await openWithKeys({ rows })
    const place = `${all}/${wb.workspace}`
    const base = (await wb.operator(`POST ${place}/knowledge-bases`, { name: 'handbook' })).body
    const path = `${place}/knowledge-bases/${base.knowledgeBaseId}`
    await wb.operator(`POST ${path}/ingest`, { text: 'A wing in supersonic flow.' })
    state.isBroken = true
    const refused = await wb.operator(`DELETE ${place}`)
    expect([refused.status, codeOf(refused)]).toEqual([503, 'control_plane_unavailable'])
    state.isBroken = false
    expect((await wb.operator(`POST ${path}/search`, { text: 'wing' })).body).toBeDefined()
    expect((await wb.operator(`GET ${path}/documents`)).body.items).toHaveLength(1)
    expect((await wb.operator(`DELETE ${place}`)).status).toBe(204)
    expect((await wb.trail()).filter(({ action }) => action === 'workspace.delete')).toHaveLength(1)
  })

  test('succeed for all other operations, and the loss of records is logged', async () => {
    const { state, rows } = createFailingAudit(full)
    const wb = await openWithKeys({ rows })
    const viewer = await wb.mint({ role: 'viewer' })
    const place = `${all}/${wb.workspace}`
    state.isBroken = true
    const { status, body } = await wb.operator(`POST ${place}/knowledge-bases`, { name: 'handbook' })
    expect(status).toBe(201)
    const base = `${place}/knowledge-bases/${body.knowledgeBaseId}`
    const document = (await wb.operator(`POST ${base}/documents`, {})).body.documentId
    expect((await wb.operator(`DELETE ${base}/documents/${document}`)).status).toBe(204)
    expect((await wb.operator(`DELETE ${base}`)).status).toBe(204)
    expect((await wb.as(viewer, `DELETE ${place}`)).status).toBe(403)
    expect((await wb.as('nothing', `GET ${place}`)).status).toBe(401)
    expect((await wb.as(bootstrap, `GET ${place}`)).status).toBe(200)
    await waitUntil(() => wb.loggedProblems.some(({ message }) => message === 'audit records were lost'))
    expect(wb.loggedProblems.filter(({ message }) => message === 'audit records were lost')).toHaveLength(1)
  })
})

describe('access to the audit trail', () => {
  test('S2.4-17: requires read:audit or manage:access for one workspace, and an operator for all of them', async () => {
    const wb = await openWithKeys()
    const second = (await wb.operator(`POST ${all}`, { name: 'second' })).body.workspaceId
    const status = async (token: string | null, path: string) => (await wb.as(token, `GET ${path}`)).status
    const mine = `${all}/${wb.workspace}/audit`
    const may: Scope[] = ['read', 'read:audit', 'manage', 'manage:access']
    const mayNot: Scope[] = [
      'read:content',
      'read:chat',
      'write',
      'manage:keys',
      'manage:workspace',
      'tools:invoke',
    ]
    for (const scope of [...may, ...mayNot]) {
      const token = await wb.mint({ scopes: [scope] })
      expect(await status(token, mine), scope).toBe(may.includes(scope) ? 200 : 403)
      expect(await status(token, `${all}/${second}/audit`), scope).toBe(403)
      expect(await status(token, '/api/v1/audit'), scope).toBe(403)
    }
    expect(await status(bootstrap, mine)).toBe(200)
    expect(await status(bootstrap, '/api/v1/audit')).toBe(200)
    expect(await status(null, mine)).toBe(401)
    expect(await status(null, '/api/v1/audit')).toBe(401)
  })

  test('S2.4-17: is all that read:audit grants, and no other route requires it', () => {
    const workspaceId = '11111111-1111-4111-8111-111111111111'
    const opened = (...scopes: Scope[]) => {
      const auth = verifiedContext('apiKey', {
        id: 'k',
        label: 'k',
        type: 'apiKey',
        workspaceScopes: [workspaceId],
        scopes,
        role: null,
        principalId: 'k',
        keyLifetimeMaxMs: null,
      })
      return Object.values(api)
        .flatMap((topic): Route[] => Object.values(topic))
        .filter(({ path, access }) => {
          const place = path.includes(':workspaceId') ? workspaceId : undefined
          return decideAccess({ rule: access, workspaceId: place }, { auth }).allow
        })
        .map(({ method, path }) => `${method} ${path}`)
    }
    const added = ['audit', 'audit/decisions', 'knowledge-bases/:knowledgeBaseId/insights'].map(
      path => `GET /api/v1/workspaces/:workspaceId/${path}`,
    )
    expect(opened('read:audit').filter(route => !added.includes(route))).toEqual(opened('tools:invoke'))
    const withoutIt: Scope[] = ['read:content', 'read:chat', 'write', 'manage', 'tools:invoke']
    expect(opened(...withoutIt, 'read:audit')).toEqual(opened(...withoutIt))
  })

  test('is limited to operators for a deleted workspace', async () => {
    const wb = await openWithKeys()
    await wb.operator(`DELETE ${all}/${wb.workspace}`)
    const gone = await wb.operator(`GET ${all}/${wb.workspace}/audit`)
    expect([gone.status, codeOf(gone)]).toEqual([404, 'workspace_not_found'])
    expect((await wb.trail()).map(({ action, workspaceId }) => [action, workspaceId])).toEqual([
      ['workspace.create', wb.workspace],
      ['workspace.delete', wb.workspace],
    ])
  })
})

describe('audit streams over HTTP', () => {
  function events({ runtime }: TestRuntime, path: string, headers: Record<string, string> = {}) {
    return runtime.fetch(
      new Request(`http://localhost${path}`, { headers: { accept: 'text/event-stream', ...headers } }),
      'authorization' in headers ? undefined : 'operator',
    )
  }

  /** Yields the IDs of the events of a stream as they arrive. */
  async function* ids(answer: Response): AsyncGenerator<string> {
    expect(answer.status).toBe(200)
    const decoder = new TextDecoder()
    let rest = ''
    for await (const part of answer.body!) {
      const blocks = (rest + decoder.decode(part, { stream: true })).split('\n\n')
      rest = blocks.pop()!
      for (const block of blocks) {
        const id = /^id: (.*)$/m.exec(block)
        if (id) yield id[1]!
      }
    }
  }

  test('deliver each record exactly once with two writing processes and a reader that reconnects', async () => {
    const one = await openWithKeys()
    const other = await open({
      dataDir: one.dataDir,
      environment: { FIRST_TOKEN: bootstrap },
      config: denying,
    })
    const rounds = 60
    const found: string[] = []
    const first = await events(one, '/api/v1/audit')
    const work = Promise.all(
      [one, other].flatMap(({ send }) =>
        [1, 2, 3].map(async () => {
          for (let n = 0; n < rounds; n++)
            await send(`GET ${all}`, undefined, { authorization: 'Bearer nothing' })
        }),
      ),
    )
    const read = async (answer: Response, upTo: number) => {
      for await (const id of ids(answer)) {
        found.push(id)
        if (found.length === upTo) return
      }
    }
    const total = 6 * rounds
    await read(first, 100)
    for (let upTo = 140; upTo < total; upTo += 40)
      await read(await events(one, '/api/v1/audit', { 'last-event-id': found.at(-1)! }), upTo)
    await read(await events(one, '/api/v1/audit', { 'last-event-id': found.at(-1)! }), total)
    await work
    const denied = (await readTrail(one)).filter(({ action }) => action === 'auth.api_denied')
    expect(new Set(found).size).toBe(total)
    expect([...found].sort()).toEqual(denied.map(({ auditId }) => auditId).sort())
  })
  const denying = {
    auth: { mode: 'apiKey', anonymousPolicy: 'reject', bootstrapTokenRef: 'env:FIRST_TOKEN' },
  }

  test('require the same access as the list', async () => {
    const wb = await openWithKeys()
    const token = await wb.mint({ scopes: ['write'] })
    const authorization = `Bearer ${token}`
    for (const path of [`${all}/${wb.workspace}/audit`, '/api/v1/audit']) {
      const answer = await events(wb, path, { authorization })
      expect([answer.status, answer.headers.get('content-type')]).toEqual([403, 'application/json'])
    }
    const missing = await events(wb, `${all}/00000000-0000-4000-8000-000000000000/audit`)
    expect(missing.status).toBe(404)
  })

  test('S3-01: end at the next ping after their key is revoked', async () => {
    const clock = new TestClock()
    const wb = await openWithKeys({ clock })
    const { body } = await wb.operator(`POST ${all}/${wb.workspace}/api-keys`, { label: 'reader' })
    const authorization = `Bearer ${body.plaintext}`
    const mine = `${all}/${wb.workspace}/audit`
    const [keyed, unkeyed] = await Promise.all([events(wb, mine, { authorization }), events(wb, mine)])
    const [of, others] = [ids(keyed), ids(unkeyed)]
    const [one, same] = [of.next(), others.next()]
    const path = `${all}/${wb.workspace}/api-keys/${(body.key as { keyId: string }).keyId}`
    expect((await wb.operator(`DELETE ${path}`)).status).toBe(204)
    expect((await one).value).toBe((await same).value)
    const [next, here] = [of.next(), others.next()]
    clock.advance(15_000)
    expect(await next).toEqual({ done: true, value: undefined })
    await wb.operator(`POST ${all}/${wb.workspace}/knowledge-bases`, { name: 'later' })
    expect((await here).done).toBe(false)
    await others.return(undefined)
  })

  test('count as one use of the bootstrap token, however long they last', async () => {
    const clock = new TestClock()
    const wb = await openWithKeys({ clock })
    const stream = ids(await events(wb, '/api/v1/audit', { authorization: `Bearer ${bootstrap}` }))
    const next = stream.next()
    for (let n = 0; n < 4; n++) {
      await new Promise(setImmediate)
      clock.advance(15_000)
    }
    await wb.operator(`POST ${all}`, { name: 'second' })
    expect((await next).done).toBe(false)
    await stream.return(undefined)
    expect((await wb.trail()).map(({ action }) => action)).toEqual([
      'workspace.create',
      'auth.bootstrap_use',
      'workspace.create',
    ])
  })

  test('end when the runtime closes', async () => {
    const wb = await openWithKeys()
    const answers = await Promise.all([events(wb, '/api/v1/audit'), events(wb, '/api/v1/audit')])
    const reading = answers.map(async answer => {
      for await (const _ of ids(answer));
    })
    await wb.close()
    await Promise.all(reading)
    expect(wb.runtime.app.inFlight).toBe(0)
  })
})

test('S6-01: no route or setting makes the runtime send events to an external address', () => {
  const outbound = /webhook|callback-?url|subscription|notif|push/i
  const paths = Object.values(api).flatMap((topic): string[] =>
    Object.values(topic).map(({ method, path }) => `${method} ${path}`),
  )
  expect(paths.length).toBeGreaterThan(40)
  expect(paths.filter(path => outbound.test(path))).toEqual([])
  const keys = knownKeys(configSchema)
  expect(keys).toContain('runtime.audit.retentionDays')
  expect(keys.filter(key => outbound.test(key))).toEqual([])
})
