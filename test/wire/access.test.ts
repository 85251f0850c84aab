import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectRefusal, type Reply, type Row, useServer } from './harness.ts'
import { unknownId } from './shapes.ts'

const bootstrapToken = 'the-token-of-the-operator-of-this-test'
const folder = mkdtempSync(join(tmpdir(), 'wb-access-'))
const path = join(folder, 'closed.yaml')
const auth = { mode: 'apiKey', anonymousPolicy: 'reject', bootstrapTokenRef: 'env:FIRST_TOKEN' }
writeFileSync(path, JSON.stringify({ version: 1, auth }))

const wire = useServer({ env: { FIRST_TOKEN: bootstrapToken }, args: ['--config', path] })
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const all = '/api/v1/workspaces'
const tokens: Record<string, string> = { operator: bootstrapToken }
let mine: string
let other: string

function as(who: string, line: string, json?: unknown): Promise<Reply> {
  const headers = { authorization: `Bearer ${tokens[who]}` }
  return wire.send(line, json === undefined ? { headers } : { headers, json })
}

async function made(who: string, line: string, json: unknown): Promise<Row> {
  const reply = await as(who, line, json)
  expect(reply.status, reply.text).toBe(201)
  return reply.body as Row
}

async function mint(name: string, workspaceId: string, grant: object): Promise<void> {
  const { plaintext } = await made('operator', `POST ${all}/${workspaceId}/api-keys`, {
    label: name,
    ...grant,
  })
  tokens[name] = String(plaintext)
}

beforeAll(async () => {
  mine = String((await made('operator', `POST ${all}`, { name: 'mine' })).workspaceId)
  other = String((await made('operator', `POST ${all}`, { name: 'other' })).workspaceId)
  for (const role of ['viewer', 'editor', 'admin']) await mint(role, mine, { role })
  for (const scope of [
    'write:kb',
    'write:ingest',
    'manage:keys',
    'manage:access',
    'manage:workspace',
    'read:audit',
  ])
    await mint(scope, mine, { scopes: [scope] })
  await mint('old', mine, {})
  await mint('neighbour', other, { role: 'admin' })
})

function unauthorized(reply: Reply, about: string): void {
  expectRefusal(reply, 401, 'unauthorized', about)
  expect(reply.headers['www-authenticate'], about).toBe('Bearer')
}

function forbidden(reply: Reply, about: string, message: string): void {
  expectRefusal(reply, 403, 'forbidden', about)
  expect((reply.body as { error: Row }).error.message, about).toBe(message)
  expect(reply.headers['www-authenticate'], about).toBeUndefined()
}

const reach = 'authenticated subject has no access to this workspace'
const runtime = 'this operation requires access to the whole runtime'
const lacks = (scope: string) => `authenticated subject is missing required scope '${scope}'`

describe('S7.1-05 S7.3-unauthorized: requests without a valid credential', () => {
  test.each<[about: string, authorization: string | undefined]>([
    ['no header', undefined],
    ['another scheme', 'Basic d2I6d2I='],
    ['a bare token', `wb_live_${'a'.repeat(12)}_${'b'.repeat(32)}`],
    ['no token', 'Bearer '],
    ['a token of no scheme', 'Bearer nonsense'],
    ['a key that does not exist', `Bearer wb_live_${'a'.repeat(12)}_${'b'.repeat(32)}`],
    ['almost the token of the operator', `Bearer ${bootstrapToken}s`],
  ])('%s is rejected on workspace routes with the full error envelope', async (about, authorization) => {
    const headers: Record<string, string> = authorization === undefined ? {} : { authorization }
    for (const line of [`GET ${all}`, `GET ${all}/${mine}`, `GET ${all}/${mine}/api-keys`, 'GET /auth/me'])
      unauthorized(await wire.send(line, { headers }), `${about}: ${line}`)
  })

  test('S1-02: an unknown path or method does not bypass authentication', async () => {
    for (const line of [
      `GET ${all}/${mine}/nothing`,
      `PUT ${all}/${mine}`,
      `GET ${all}/`,
      `POST ${all}/${mine}/mcp`,
    ])
      unauthorized(await wire.send(line), line)
  })

  test('returns 404 to every authenticated caller for an unknown path below a workspace [S1-02]', async () => {
    for (const who of ['viewer', 'neighbour', 'operator'])
      for (const line of [
        `GET ${all}/${mine}/nothing`,
        `DELETE ${all}/${mine}/agents`,
        `PUT ${all}/${mine}`,
        `POST ${all}/${unknownId}/nothing`,
      ])
        expectRefusal(await as(who, line), 404, 'not_found', `${who}: ${line}`)
  })

  test('S4.1-07: operational routes respond without reading the Authorization header', async () => {
    for (const route of ['/', '/healthz', '/readyz', '/version', '/docs', '/api/v1/openapi.json'])
      for (const authorization of [
        undefined,
        'Basic d2I6d2I=',
        'Bearer nonsense',
        `Bearer ${tokens.viewer}`,
      ]) {
        const reply = await wire.send(`GET ${route}`, authorization ? { headers: { authorization } } : {})
        expect(reply.status, `${route} ${authorization}`).toBe(200)
      }
  })
})

describe('requests that exceed the permissions of a key', () => {
  test.each<[who: string, method: string, below: string, scope: string]>([
    ['viewer', 'POST', '/knowledge-bases', 'write:kb'],
    ['viewer', 'PATCH', `/knowledge-bases/${unknownId}`, 'write:kb'],
    ['write:ingest', 'DELETE', `/knowledge-bases/${unknownId}`, 'write:kb'],
    ['viewer', 'POST', `/knowledge-bases/${unknownId}/ingest`, 'write:ingest'],
    ['write:kb', 'POST', `/knowledge-bases/${unknownId}/ingest/batch`, 'write:ingest'],
    ['write:kb', 'DELETE', `/knowledge-bases/${unknownId}/documents/${unknownId}`, 'write:ingest'],
    ['viewer', 'POST', `/knowledge-bases/${unknownId}/records`, 'write:ingest'],
    ['viewer', 'POST', '/embedding-services', 'write:services'],
    ['write:kb', 'DELETE', `/chunking-services/${unknownId}`, 'write:services'],
    ['viewer', 'PATCH', '', 'write'],
    ['write:kb', 'PATCH', '', 'write'],
    ['manage:access', 'PATCH', '', 'write'],
  ])('S4.2-07 S5.5-16 S7.2-09 S7.3-forbidden: %s: %s %s', async (who, method, below, scope) => {
    const line = `${method} ${all}/${mine}${below}`
    forbidden(await as(who, line), line, lacks(scope))
  })

  test('checks access before it reads the body, so an invalid body reveals nothing', async () => {
    forbidden(
      await as('viewer', `POST ${all}/${mine}/knowledge-bases`, { name: 5 }),
      'a wrong body',
      lacks('write:kb'),
    )
  })

  test.each<[method: string, below: string, scope: string]>([
    ['GET', '/api-keys', 'manage:keys'],
    ['POST', '/api-keys', 'manage:keys'],
    ['GET', `/api-keys/${unknownId}`, 'manage:keys'],
    ['POST', `/api-keys/${unknownId}/rotate`, 'manage:keys'],
    ['DELETE', `/api-keys/${unknownId}`, 'manage:keys'],
    ['DELETE', '', 'manage:workspace'],
  ])(
    'S4.2-10 S4.2-15 S5.5-20 S5.9-08 S9-05: %s %s is rejected for editors and for keys that predate manage scopes',
    async (method, below, scope) => {
      const line = `${method} ${all}/${mine}${below}`
      for (const who of ['viewer', 'editor', 'old', 'write:kb', 'write:ingest', 'manage:access'])
        forbidden(await as(who, line), `${who}: ${line}`, lacks(scope))
    },
  )

  test('S2.6-10: a role sent by the client has no effect', async () => {
    const headers = {
      authorization: `Bearer ${tokens.viewer}`,
      cookie: 'role=admin; scopes=manage',
      'x-role': 'admin',
      'x-scopes': 'manage',
      'x-view-as-principal': 'admin',
    }
    const line = `POST ${all}/${mine}/api-keys?role=admin`
    const reply = await wire.send(line, { headers, json: { label: 'mine', role: 'admin', scopes: null } })
    forbidden(reply, line, lacks('manage:keys'))
  })
})

describe('requests within the permissions of a key', () => {
  test('S5.5-04 S5.5-08 S4.2-27: reading and searching require no scope', async () => {
    const { knowledgeBaseId } = await made('editor', `POST ${all}/${mine}/knowledge-bases`, {
      name: 'readable',
    })
    const kb = `${all}/${mine}/knowledge-bases/${knowledgeBaseId}`
    for (const who of ['viewer', 'write:kb', 'manage:keys', 'read:audit']) {
      for (const line of [`GET ${all}/${mine}`, `GET ${kb}`, `GET ${kb}/documents`])
        expect((await as(who, line)).status, `${who}: ${line}`).toBe(200)
      expect((await as(who, `POST ${kb}/search`, { text: 'anything' })).status, who).toBe(200)
    }
  })

  test('S9-06 S9-07: old keys still read and write, and a new key with manage can manage', async () => {
    await made('old', `POST ${all}/${mine}/knowledge-bases`, { name: 'by_an_old_key' })
    await mint('new', mine, { scopes: ['read', 'write', 'manage'] })
    expect((await as('new', `GET ${all}/${mine}/api-keys`)).status).toBe(200)
  })

  test('S5.5-15: manage:keys is sufficient to create a key, without any write scope', async () => {
    const { key } = await made('manage:keys', `POST ${all}/${mine}/api-keys`, {
      label: 'of its kind',
      scopes: ['manage:keys'],
    })
    expect(key).toMatchObject({ scopes: ['manage:keys'], role: null })
  })

  test('S4.2-10 S5.5-19: manage:workspace is sufficient for a key to delete its workspace', async () => {
    const { workspaceId } = await made('operator', `POST ${all}`, { name: 'short lived' })
    await mint('undertaker', String(workspaceId), { scopes: ['manage:workspace'] })
    expect((await as('undertaker', `DELETE ${all}/${workspaceId}`)).status).toBe(204)
  })
})

describe('S4.2-08: PATCH with rlacEnabled', () => {
  test('rejects a change by an editor and applies none of the body', async () => {
    const before = (await as('viewer', `GET ${all}/${mine}`)).body
    const line = `PATCH ${all}/${mine}`
    forbidden(await as('editor', line, { name: 'renamed', rlacEnabled: true }), line, lacks('manage:access'))
    expect((await as('viewer', `GET ${all}/${mine}`)).body).toEqual(before)
  })

  test('accepts the unchanged value from an editor', async () => {
    const reply = await as('editor', `PATCH ${all}/${mine}`, { name: 'mine', rlacEnabled: false })
    expect(reply).toMatchObject({ status: 200, body: { name: 'mine', rlacEnabled: false } })
  })

  test('rejects a caller who has manage:access but no write scope', async () => {
    const line = `PATCH ${all}/${mine}`
    forbidden(await as('manage:access', line, { rlacEnabled: true }), line, lacks('write'))
  })

  test('accepts a change by an admin', async () => {
    for (const rlacEnabled of [true, false])
      expect(await as('admin', `PATCH ${all}/${mine}`, { rlacEnabled })).toMatchObject({
        status: 200,
        body: { rlacEnabled },
      })
  })
})

describe('PATCH with the policy of a knowledge base', () => {
  const policy = { policyDsl: "team = 'blue'", policyEnabled: true }
  let base: string

  beforeAll(async () => {
    const bases = `${all}/${mine}/knowledge-bases`
    base = `${bases}/${(await made('editor', `POST ${bases}`, { name: 'guarded' })).knowledgeBaseId}`
    expect((await as('admin', `PATCH ${base}`, policy)).body).toMatchObject(policy)
  })

  test.each([
    [{ policyDsl: null }],
    [{ policyDsl: "team = 'red'" }],
    [{ policyDsl: 'team =' }],
    [{ policyEnabled: false }],
    [{ ...policy, policyEnabled: false }],
  ])('rejects %j from an editor and applies none of the body [S2.4-09]', async change => {
    const before = (await as('viewer', `GET ${base}`)).body
    for (const who of ['editor', 'write:kb'])
      forbidden(
        await as(who, `PATCH ${base}`, { description: 'changed', ...change }),
        `PATCH ${base}`,
        lacks('manage:access'),
      )
    expect((await as('viewer', `GET ${base}`)).body).toEqual(before)
  })

  test('accepts the stored policy from an editor', async () => {
    const reply = await as('editor', `PATCH ${base}`, { description: 'sent back', ...policy })
    expect(reply).toMatchObject({ status: 200, body: { description: 'sent back', ...policy } })
  })

  test('rejects a caller who has manage:access but not write:kb', async () => {
    const line = `PATCH ${base}`
    forbidden(await as('manage:access', line, { policyEnabled: false }), line, lacks('write:kb'))
  })

  test('accepts a caller who has write:kb and manage:access', async () => {
    await mint('both', mine, { scopes: ['write:kb', 'manage:access'] })
    const none = { policyDsl: null, policyEnabled: false }
    expect(await as('both', `PATCH ${base}`, none)).toMatchObject({ status: 200, body: none })
    expect(await as('both', `PATCH ${base}`, policy)).toMatchObject({ status: 200, body: policy })
  })

  test('ignores a policy in the request that creates a knowledge base, also from an editor', async () => {
    const reply = await as('editor', `POST ${all}/${mine}/knowledge-bases`, { name: 'unguarded', ...policy })
    expect(reply).toMatchObject({ status: 201, body: { policyDsl: null, policyEnabled: false } })
    expect(reply.headers['x-workbase-ignored']).toBe('policyDsl, policyEnabled')
  })
})

test('only a caller with access to the whole runtime sees the size of its file', async () => {
  const { knowledgeBaseId } = await made('operator', `POST ${all}/${mine}/knowledge-bases`, {
    name: 'compacted',
  })
  const line = `POST ${all}/${mine}/knowledge-bases/${knowledgeBaseId}/compact`
  forbidden(await as('viewer', line), line, lacks('write:kb'))
  const fileOf = ({ body }: Reply) => (body as { after: { file: unknown } }).after.file
  expect(fileOf(await as('write:kb', line))).toBeNull()
  expect(fileOf(await as('operator', line))).toMatchObject({ canShrink: true })
})

describe('requests to other workspaces', () => {
  test('S5.4-04 S5.4-05 S5.5-03 S7.2-08 S7.3-forbidden: the admin of one workspace is rejected on every route of another', async () => {
    const document = (await wire.get('/api/v1/openapi.json')) as { paths: Record<string, Row> }
    const lines = Object.entries(document.paths)
      .filter(([route]) => route.includes('{workspaceId}'))
      .flatMap(([route, operations]) => {
        const filled = route.replace('{workspaceId}', mine).replaceAll(/\{\w+\}/g, unknownId)
        return Object.keys(operations).map(method => `${method.toUpperCase()} ${filled}`)
      })
    expect(lines.length).toBeGreaterThan(30)
    for (const line of lines) forbidden(await as('neighbour', line), line, reach)
  })

  test('S5.4-04: the rejection does not reveal if a workspace exists', async () => {
    forbidden(await as('neighbour', `GET ${all}/${unknownId}`), 'a workspace that does not exist', reach)
    forbidden(await as('neighbour', `GET ${all}/${mine.toUpperCase()}`), 'another spelling', reach)
    await as('operator', `GET ${all}/${unknownId}`).then(reply =>
      expectRefusal(reply, 404, 'workspace_not_found', 'the operator is told'),
    )
  })

  test('S4.2-04 S4.2-05 S5.4-02 S5.4-03: only an operator can create a workspace, not a member of one', async () => {
    for (const who of ['viewer', 'editor', 'admin', 'manage:workspace'])
      forbidden(await as(who, `POST ${all}`, { name: `made by ${who}` }), who, runtime)
    await made('operator', `POST ${all}`, { name: 'made by the operator' })
  })

  test('S4.2-02: a key lists only its own workspace', async () => {
    for (const query of ['', '?limit=1']) {
      const reply = await as('neighbour', `GET ${all}${query}`)
      expect(reply.body, query).toMatchObject({ items: [{ workspaceId: other }], nextCursor: null })
    }
    const seen = (await as('operator', `GET ${all}`)).body as { items: Row[] }
    expect(seen.items.map(item => item.workspaceId)).toEqual(expect.arrayContaining([mine, other]))
  })

  test('a name taken by a hidden workspace is reported as unavailable, without further details [security rule 18]', async () => {
    const taken = 'the name of a secret project'
    const { workspaceId } = await made('operator', `POST ${all}`, {
      name: taken,
      url: 'https://db.example.com',
    })
    const reply = await as('editor', `PATCH ${all}/${mine}`, { name: taken })
    expectRefusal(reply, 409, 'workspace_name_conflict', 'a rename')
    const { error } = reply.body as { error: Row }
    expect(error.message).toBe(`the workspace name '${taken}' is not available`)
    expect(reply.text).not.toContain(workspaceId)
    expect((await as('viewer', `GET ${all}/${mine}`)).body).toMatchObject({ name: 'mine' })
  })
})
