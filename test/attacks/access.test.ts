import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { createSandbox } from '../commands/sandbox.ts'
import { open, type TestResponse, type TestRuntime } from '../harness/runtime.ts'

const requireKeys = { auth: { mode: 'apiKey', anonymousPolicy: 'reject' } }
const bearer = (token: string) => ({ authorization: `Bearer ${token}` })

interface Minted {
  readonly plaintext: string
  readonly key: {
    readonly keyId: string
    readonly scopes: readonly string[]
    readonly expiresAt: string | null
  }
}

/** Creates a workspace, with a function to create keys in it. */
async function createWorkspace({ sendAsOperator }: TestRuntime) {
  const made = await sendAsOperator('POST /api/v1/workspaces', { name: 'mine' })
  const keys = `/api/v1/workspaces/${made.body.workspaceId}/api-keys`
  const mint = async (body: object) => {
    const { status, body: minted, text } = await sendAsOperator(`POST ${keys}`, { label: 'a key', ...body })
    expect(status, text).toBe(201)
    return minted as unknown as Minted
  }
  return { keys, mint }
}

function rejectionMessage({ status, body }: TestResponse): unknown {
  expect(status).toBe(403)
  return (body.error as { message: string }).message
}

describe('open access requires confirmation [security rule 2]', () => {
  test.each([
    ['apiKey and allow', { mode: 'apiKey', anonymousPolicy: 'allow' }],
    ['disabled and reject, which accepts any header', { mode: 'disabled', anonymousPolicy: 'reject' }],
  ])('%s: refuses to listen on other addresses without confirmation', async (_name, auth) => {
    const here = createSandbox()
    const config = join(here.home, 'open.yaml')
    writeFileSync(config, JSON.stringify({ version: 1, auth }))
    const line = ['serve', '--host', '0.0.0.0', '--port', '0', '--config', config]
    expect(await here.wb(line)).toMatchObject({
      status: 2,
      stderr: expect.stringContaining('--allow-open-access'),
    })
  })

  test.each([
    ['acknowledgeOpenAccess allows open access', { acknowledgeOpenAccess: true }],
    ['a runtime with authentication needs no confirmation', requireKeys.auth],
  ])('%s', async (_name, auth) => {
    const here = createSandbox()
    const config = join(here.home, 'served.yaml')
    writeFileSync(config, JSON.stringify({ version: 1, auth }))
    const { url } = await here.serve(['--host', '0.0.0.0', '--config', config])
    expect((await fetch(`${url}/healthz`)).status).toBe(200)
  })
})

describe('several processes with one data directory [security rule 5]', () => {
  test('a key revoked by one runtime is rejected by another that has verified it before', async () => {
    const one = await open({ config: requireKeys })
    const other = await open({ config: requireKeys, dataDir: one.dataDir })
    const { keys, mint } = await createWorkspace(one)
    const { plaintext, key } = await mint({ role: 'admin' })
    for (const runtime of [one, other])
      expect((await runtime.send(`GET ${keys}`, undefined, bearer(plaintext))).status).toBe(200)
    expect((await one.sendAsOperator(`DELETE ${keys}/${key.keyId}`)).status).toBe(204)
    expect((await other.send(`GET ${keys}`, undefined, bearer(plaintext))).status).toBe(401)
  })
})

describe('callers grant only what they hold [security rule 7]', () => {
  test('a key with manage:keys creates no key with other scopes, another principal or a longer lifetime', async () => {
    const runtime = await open({ config: requireKeys })
    const { keys, mint } = await createWorkspace(runtime)
    const soon = new Date(Date.now() + 3_600_000).toISOString()
    const minter = await mint({ scopes: ['write:ingest', 'manage:keys'], expiresAt: soon })
    const as = (json: object) =>
      runtime.send(`POST ${keys}`, { label: 'more', ...json }, bearer(minter.plaintext))
    expect(rejectionMessage(await as({ role: 'viewer' }))).toContain("scope 'read'")
    expect(rejectionMessage(await as({}))).toContain("scope 'read'")
    expect(rejectionMessage(await as({ scopes: ['write'] }))).toContain("scope 'write'")
    expect(rejectionMessage(await as({ scopes: ['manage'] }))).toContain("scope 'manage'")
    expect(rejectionMessage(await as({ scopes: ['tools:invoke'] }))).toContain("scope 'tools:invoke'")
    expect(rejectionMessage(await as({ scopes: ['write:ingest'], principalId: 'the-boss' }))).toContain(
      'manage:access',
    )
    const later = '2099-01-01T00:00:00.000Z'
    expect(rejectionMessage(await as({ scopes: ['write:ingest'], expiresAt: later }))).toContain('expiresAt')
    const { status, body } = await as({ scopes: ['write:ingest'], expiresAt: null })
    expect(status).toBe(201)
    const span = Date.parse(String((body as unknown as Minted).key.expiresAt)) - Date.now()
    expect(span).toBeGreaterThan(0)
    expect(span).toBeLessThanOrEqual(3_600_000)
  })

  test('a key cannot rotate a key with more scopes', async () => {
    const runtime = await open({ config: requireKeys })
    const { keys, mint } = await createWorkspace(runtime)
    const minter = await mint({ scopes: ['manage:keys'] })
    const admin = await mint({ role: 'admin' })
    const rotated = await runtime.send(`POST ${keys}/${admin.key.keyId}/rotate`, {}, bearer(minter.plaintext))
    expect(rejectionMessage(rotated)).toContain("scope 'read'")
    expect(rotated.text).not.toContain('wb_live_')
  })

  test('an admin key creates a key with only tools:invoke, and rotates itself', async () => {
    const runtime = await open({ config: requireKeys })
    const { keys, mint } = await createWorkspace(runtime)
    const soon = new Date(Date.now() + 3_600_000).toISOString()
    const admin = await mint({ role: 'admin', expiresAt: soon })
    const as = (line: string, json?: object) => runtime.send(line, json, bearer(admin.plaintext))
    const tools = await as(`POST ${keys}`, { label: 'tools', scopes: ['tools:invoke'] })
    expect(tools).toMatchObject({ status: 201, body: { key: { scopes: ['tools:invoke'], role: null } } })
    const rotated = await as(`POST ${keys}/${admin.key.keyId}/rotate`, { graceSeconds: 0 })
    expect(rotated.status).toBe(201)
    expect((await as(`GET ${keys}`)).status).toBe(401)
    const successor = String(rotated.body.plaintext)
    expect((await runtime.send(`GET ${keys}`, undefined, bearer(successor))).status).toBe(200)
  })
})

describe('no implicit operator [security rule 8]', () => {
  test("an in-process request is not an operator's, whatever its headers contain", async () => {
    const runtime = await open({ config: requireKeys })
    const claims: Record<string, string>[] = [
      {},
      { 'x-operator': 'true', 'x-workbase-operator': '1', 'x-as': 'operator' },
      { authorization: 'Bearer operator' },
      { authorization: 'Bearer system' },
      { cookie: 'operator=1; wb_session=operator' },
      { 'x-forwarded-for': '127.0.0.1', forwarded: 'for=127.0.0.1;by=operator' },
    ]
    for (const headers of claims)
      for (const line of [
        'GET /api/v1/workspaces',
        'GET /api/v1/audit',
        'GET /api/v1/workspaces?as=operator',
      ])
        expect((await runtime.send(line, undefined, headers)).status, JSON.stringify(headers)).toBe(401)
  })

  test('changes by the owner of the data directory are audited as changes by the system', async () => {
    const runtime = await open({ config: requireKeys })
    const { mint } = await createWorkspace(runtime)
    const { key } = await mint({ role: 'viewer' })
    const { items } = (await runtime.sendAsOperator('GET /api/v1/audit')).body as { items: object[] }
    expect(items).toMatchObject([
      { action: 'api_key.create', subject: { type: 'system' }, details: { keyId: key.keyId } },
      { action: 'workspace.create', subject: { type: 'system' } },
    ])
  })
})

describe('no commands over HTTP [security rule 9]', () => {
  test('no request body has a field for a command, except playground commands for the database', async () => {
    const { send } = await open()
    const { paths, components } = (await send('GET /api/v1/openapi.json')).body as {
      paths: Record<string, object>
      components: { schemas: Record<string, object> }
    }
    delete paths['/api/v1/workspaces/{workspaceId}/playground/execute']
    delete components.schemas.PlaygroundResult
    const names = [...JSON.stringify([paths, components]).matchAll(/"(\w+)":\{/g)].map(([, name]) => name!)
    expect(names).toContain('embeddingDimension')
    expect(names.filter(name => /^(?:command|args|argv|exec|shell|stdio|cwd|env)/i.test(name))).toEqual([])
  })
})

describe('anonymous callers [security rule 17]', () => {
  test('cannot read the audit trail of the runtime in a mode with authentication, even where they can use other routes', async () => {
    const runtime = await open({ config: { auth: { mode: 'apiKey', anonymousPolicy: 'allow' } } })
    const { mint } = await createWorkspace(runtime)
    expect((await runtime.send('GET /api/v1/workspaces')).status).toBe(200)
    expect((await runtime.send('GET /api/v1/audit')).status).toBe(401)
    const { plaintext } = await mint({ role: 'admin' })
    expect((await runtime.send('GET /api/v1/audit', undefined, bearer(plaintext))).status).toBe(403)
  })

  test('can read it if authentication is disabled', async () => {
    const runtime = await open()
    expect((await runtime.send('GET /api/v1/audit')).status).toBe(200)
  })
})
