import { describe, expect, test } from 'vitest'
import { open, type TestResponse, type TestRuntime, waitUntil } from '../harness/runtime.ts'

const bootstrap = 'bootstrap-canary-of-48-characters-for-one-test-x'
const all = '/api/v1/workspaces'
const unknownId = '9b1c1a52-6f0e-4c0e-9d53-2f3a4b5c6d7e'

interface Denial {
  readonly action: string
  readonly outcome: string
  readonly requestId: string
  readonly subject: { readonly type: string; readonly id: string | null; readonly label: string | null }
  readonly workspaceId: string | null
  readonly details: Readonly<Record<string, string>>
}

class TwoWorkspaces {
  readonly tokens: Record<string, string> = { operator: bootstrap }
  own = ''
  other = ''

  constructor(readonly wb: TestRuntime) {}

  as(who: string, line: string, json?: unknown): Promise<TestResponse> {
    return this.wb.send(line, json, { authorization: `Bearer ${this.tokens[who]}` })
  }

  async mint(name: string, grant: object): Promise<string> {
    const { status, text, body } = await this.as('operator', `POST ${all}/${this.own}/api-keys`, {
      label: name,
      ...grant,
    })
    expect(status, text).toBe(201)
    this.tokens[name] = String(body.plaintext)
    return (body.key as { keyId: string }).keyId
  }

  /** Returns all records of denied requests, oldest first. */
  async denials(): Promise<Denial[]> {
    const { body } = await this.as('operator', 'GET /api/v1/audit?action=auth.api_denied&limit=200')
    return (body.items as Denial[]).reverse()
  }
}

async function createTwoWorkspaces(runtime: object = {}): Promise<TwoWorkspaces> {
  const auth = { mode: 'apiKey', anonymousPolicy: 'reject', bootstrapTokenRef: 'env:FIRST' }
  const workspaces = new TwoWorkspaces(
    await open({ config: { auth, runtime }, environment: { FIRST: bootstrap } }),
  )
  for (const name of ['own', 'other'] as const)
    workspaces[name] = String((await workspaces.as('operator', `POST ${all}`, { name })).body.workspaceId)
  return workspaces
}

/** Returns the records of several requests, one per request, in order. */
async function deniedBy(home: TwoWorkspaces, requests: () => Promise<TestResponse[]>): Promise<Denial[]> {
  const before = (await home.denials()).length
  const answers = await requests()
  await waitUntil(async () => (await home.denials()).length >= before + answers.length)
  const found = (await home.denials()).slice(before)
  const ids = answers.map(({ body }) => (body.error as { requestId: string }).requestId)
  expect(found.map(({ requestId }) => requestId)).toEqual(ids)
  expect(found.every(({ action, outcome }) => action === 'auth.api_denied' && outcome === 'denied')).toBe(
    true,
  )
  return found
}

describe('each denied request below /api/v1/ writes one audit record', () => {
  test('S6-04: 401, with the credential type, on known and unknown routes', async () => {
    const home = await createTwoWorkspaces()
    const attempts: [line: string, headers: Record<string, string>, scheme: string][] = [
      [`GET ${all}`, {}, 'none'],
      [`POST ${all}`, {}, 'none'],
      [`GET ${all}/${home.own}`, { authorization: 'Bearer canary' }, 'bearer'],
      [`GET ${all}/${home.own}`, { authorization: 'Basic canary' }, 'other'],
      [`GET ${all}/${home.own}`, { cookie: 'wb_session=canary' }, 'session'],
      [`DELETE ${all}/${home.own}/api-keys/${unknownId}`, {}, 'none'],
      ['GET /api/v1/nowhere', {}, 'none'],
      ['GET /api/v1/audit', {}, 'none'],
    ]
    for (const [line, headers] of attempts)
      expect((await home.wb.send(line, undefined, headers)).status, line).toBe(401)
    await waitUntil(async () => (await home.denials()).length >= attempts.length)
    const found = await home.denials()
    expect(found.map(({ details }) => details.scheme)).toEqual(attempts.map(([, , scheme]) => scheme))
    for (const { outcome, subject, details } of found) {
      expect([outcome, subject]).toEqual(['denied', { type: 'anonymous', id: null, label: null }])
      expect(Object.keys(details)).toEqual(['scheme', 'reason'])
    }
    expect(JSON.stringify(found)).not.toContain('canary')
  })

  test('S6-04: a revoked key is identified in the audit log of its workspace', async () => {
    const home = await createTwoWorkspaces()
    const keyId = await home.mint('gone', { role: 'viewer' })
    expect((await home.as('operator', `DELETE ${all}/${home.own}/api-keys/${keyId}`)).status).toBe(204)
    const found = await deniedBy(home, async () => [
      await home.as('gone', `GET ${all}/${home.own}`),
      await home.as('gone', `GET ${all}/${home.other}`),
      await home.as('gone', `GET ${all}`),
    ])
    for (const { workspaceId, subject, details } of found) {
      expect([workspaceId, subject.type]).toEqual([home.own, 'anonymous'])
      expect(details).toMatchObject({ keyId, reason: 'the key was revoked' })
    }
  })

  test('S6-04 S6-05: 403 of the access check, with the missing scope', async () => {
    const home = await createTwoWorkspaces()
    const keyId = await home.mint('viewer', { role: 'viewer' })
    const found = await deniedBy(home, async () => [
      await home.as('viewer', `POST ${all}/${home.own}/knowledge-bases`, { name: 'x' }),
      await home.as('viewer', `DELETE ${all}/${home.own}`),
      await home.as('viewer', `GET ${all}/${home.own}/api-keys`),
      await home.as('viewer', `GET ${all}/${home.other}`),
      await home.as('viewer', `POST ${all}`, { name: 'x' }),
      await home.as('viewer', 'GET /api/v1/audit'),
    ])
    expect(found.map(({ details }) => details.requiredScope)).toEqual([
      'write:kb',
      'manage:workspace',
      'manage:keys',
      undefined,
      undefined,
      undefined,
    ])
    expect(found.map(({ workspaceId }) => workspaceId)).toEqual([
      ...Array<string>(3).fill(home.own),
      home.other,
      null,
      null,
    ])
    const labels = found.map(({ subject }) => subject?.label)
    expect(labels).toEqual(['viewer', 'viewer', 'viewer', null, 'viewer', 'viewer'])
    for (const { subject } of found) expect(subject).toMatchObject({ type: 'apiKey', id: keyId })
  })

  test('S6-05: the first scope is recorded if either of two would suffice', async () => {
    const home = await createTwoWorkspaces()
    await home.mint('builder', { scopes: ['write:kb'] })
    const [denial] = await deniedBy(home, async () => [
      await home.as('builder', `GET ${all}/${home.own}/audit`),
    ])
    expect(denial!.details.requiredScope).toBe('read:audit')
  })

  test('S6-05 S4.2-08: 403 of a handler, for a change that needs a further scope and for scopes that cannot be granted', async () => {
    const home = await createTwoWorkspaces()
    await home.mint('editor', { role: 'editor' })
    await home.mint('minter', { scopes: ['manage:keys'] })
    const found = await deniedBy(home, async () => [
      await home.as('editor', `PATCH ${all}/${home.own}`, { rlacEnabled: true }),
      await home.as('minter', `POST ${all}/${home.own}/api-keys`, { label: 'x', role: 'viewer' }),
    ])
    expect(found.map(({ details }) => details.requiredScope)).toEqual(['manage:access', 'read'])
    expect(found.map(({ workspaceId }) => workspaceId)).toEqual([home.own, home.own])
  })

  test('S6-04 S3-03: the record of a revoked key does not contain the key', async () => {
    const home = await createTwoWorkspaces()
    const keyId = await home.mint('gone', { role: 'admin' })
    expect((await home.as('gone', `GET ${all}`)).status).toBe(200)
    expect((await home.as('operator', `DELETE ${all}/${home.own}/api-keys/${keyId}`)).status).toBe(204)
    const found = await deniedBy(home, async () => [
      await home.as('gone', `GET ${all}`),
      await home.as('gone', `GET /api/v1/${home.tokens.gone}`),
    ])
    expect(JSON.stringify(found)).not.toContain(home.tokens.gone!.slice(-32))
    for (const { details } of found) expect(details.scheme).toBe('bearer')
  })

  test('successful requests and other failures write no record', async () => {
    const home = await createTwoWorkspaces()
    await home.mint('admin', { role: 'admin' })
    const statuses = [
      await home.as('admin', `GET ${all}/${home.own}`),
      await home.as('admin', `GET ${all}/${home.own}/knowledge-bases/${unknownId}`),
      await home.as('admin', 'GET /api/v1/nowhere'),
      await home.as('admin', `PATCH ${all}/${home.own}`, { colour: 1 }),
      await home.wb.send('GET /nowhere'),
      await home.wb.send('GET /auth/me'),
    ].map(({ status }) => status)
    expect(statuses).toEqual([200, 404, 404, 400, 404, 401])
    const [last] = await deniedBy(home, async () => [await home.as('nobody', `GET ${all}`)])
    expect(await home.denials()).toEqual([last])
  })
})
