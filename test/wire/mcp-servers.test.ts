import { expect, test } from 'vitest'
import { limits } from '../../src/contract/limits.ts'
import { mcpServers } from '../../src/contract/mcp-servers.ts'
import type { RowStore } from '../../src/storage/rows.ts'
import { tables } from '../../src/storage/tables.ts'
import { startMcpServer } from '../fakes/mcp-server.ts'
import { makeWorkspace } from '../harness/resources.ts'
import { open, type TestRuntime, type TestRuntimeOptions } from '../harness/runtime.ts'
import { exactly, isoMs, uuid } from './exactly.ts'
import { failure, unknownId } from './shapes.ts'

const url = 'https://tools.example.com/mcp'

function mcpServer(known: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    workspaceId: uuid,
    mcpServerId: uuid,
    label: 'tools',
    url,
    credentialRef: null,
    authType: 'credential',
    oauthClientId: null,
    oauthClientSecretRef: null,
    oauthScopes: null,
    enabled: true,
    allowedTools: null,
    createdAt: isoMs,
    updatedAt: isoMs,
    ...known,
  }
}

async function place(options: TestRuntimeOptions = {}) {
  const wb = await open(options)
  const { workspaceId } = await makeWorkspace(wb)
  return { wb, workspaceId, path: `/api/v1/workspaces/${workspaceId}/mcp-servers` }
}

/** A workspace, and its stored rows. */
async function placeWithRows() {
  let rows!: RowStore
  const made = await place({
    rows: store => {
      rows = store
      return store
    },
  })
  return { ...made, rows }
}

async function register(wb: TestRuntime, path: string, fields: object = {}) {
  const { status, body, text } = await wb.send(`POST ${path}`, { label: 'tools', url, ...fields })
  expect(status, text).toBe(201)
  return { body, one: `${path}/${body.mcpServerId}` }
}

test('S2.7-03 S2.7-01 S5.9-06: a server can be created, shown, changed and deleted, and stores its credential as a reference', async () => {
  const { wb, path, workspaceId } = await place()
  const credentialRef = 'env:TOOLS_KEY'
  const { body, one } = await register(wb, path, { credentialRef, allowedTools: ['search'] })
  exactly(body, mcpServer({ workspaceId, credentialRef, allowedTools: ['search'] }))
  exactly((await wb.send(`GET ${one}`)).body, body)
  exactly((await wb.send(`GET ${path}`)).body, { items: [body], nextCursor: null })
  const changed = await wb.send(`PATCH ${one}`, { label: 'other', enabled: false, allowedTools: [] })
  expect(changed.status).toBe(200)
  exactly(changed.body, {
    ...body,
    label: 'other',
    enabled: false,
    allowedTools: [],
    updatedAt: isoMs,
  })
  const deleted = await wb.send(`DELETE ${one}`)
  expect([deleted.status, deleted.text]).toEqual([204, ''])
  exactly((await wb.send(`GET ${path}`)).body, { items: [], nextCursor: null })
})

test('S4.2-21: PATCH accepts a new credentialRef, and the response has the reference, not the value', async () => {
  const { wb, path } = await place({ environment: { NEW_KEY: 'the value itself' } })
  const { one } = await register(wb, path, { credentialRef: 'env:OLD_KEY' })
  const { status, body, text } = await wb.send(`PATCH ${one}`, { credentialRef: 'env:NEW_KEY' })
  expect(status).toBe(200)
  exactly(body, mcpServer({ credentialRef: 'env:NEW_KEY' }))
  expect(text).not.toContain('the value itself')
  exactly((await wb.send(`PATCH ${one}`, { credentialRef: null })).body, mcpServer())
})

test('an unknown ID is 404 mcp_server_not_found on each route, with hint and docs [S2.7-03]', async () => {
  const { wb, path } = await place()
  const one = `${path}/${unknownId}`
  for (const [line, json] of [
    [`GET ${one}`],
    [`PATCH ${one}`, {}],
    [`DELETE ${one}`],
    [`POST ${one}/test-connection`],
  ] as const) {
    const { status, body } = await wb.send(line, json)
    expect([line, status]).toEqual([line, 404])
    exactly(body, failure('mcp_server_not_found'))
  }
})

test('an unknown workspace is 404 on each route', async () => {
  const wb = await open()
  const path = `/api/v1/workspaces/${unknownId}/mcp-servers`
  for (const [line, json] of [
    [`GET ${path}`],
    [`POST ${path}`, { label: 'tools', url }],
    [`GET ${path}/${unknownId}`],
    [`DELETE ${path}/${unknownId}`],
  ] as const) {
    const { status, body } = await wb.send(line, json)
    expect([line, status]).toEqual([line, 404])
    exactly(body, failure('workspace_not_found'))
  }
})

test('lists servers by ID, in pages', async () => {
  const { wb, workspaceId, path } = await place()
  const ids: string[] = []
  for (let at = 0; at < 5; at++) ids.push(String((await register(wb, path)).body.mcpServerId))
  const listed: string[] = []
  let cursor: string | undefined
  do {
    const page = await wb.call(mcpServers.list, { params: { workspaceId }, query: { limit: 2, cursor } })
    listed.push(...page.items.map(({ mcpServerId }) => mcpServerId))
    cursor = page.nextCursor ?? undefined
  } while (cursor)
  expect(listed).toEqual([...ids].sort())
})

test.each([
  ['an id of its own', { mcpServerId: unknownId }, 'mcpServerId'],
  ['an unknown field', { trust: 'all' }, 'trust'],
  ['an empty label', { label: '' }, 'label'],
  ['a label over the bound', { label: 'x'.repeat(limits.mcpServerLabelChars + 1) }, 'label'],
  ['a plain secret', { credentialRef: 'sk-plain-secret' }, 'credentialRef'],
  ['a url that is none', { url: 'tools' }, 'url'],
  ['another scheme', { url: 'file:///etc/passwd' }, 'url'],
  ['user information', { url: 'https://a:b@tools.example.com/' }, 'url'],
  ['a metadata service', { url: 'http://metadata.google.internal/' }, 'url'],
  ['a link-local address', { url: 'http://169.254.169.254/' }, 'url'],
  ['the same in hexadecimal', { url: 'http://0xa9fea9fe/' }, 'url'],
  ['the same through NAT64', { url: 'http://[64:ff9b::a9fe:a9fe]/' }, 'url'],
  ['a tool that is no text', { allowedTools: [5] }, 'allowedTools'],
])('POST and PATCH reject %s with the name of the field and change nothing', async (_, fields, name) => {
  const { wb, path } = await place()
  const { body, one } = await register(wb, path)
  for (const line of [`POST ${path}`, `PATCH ${one}`]) {
    const sent = line.startsWith('POST') ? { label: 'tools', url, ...fields } : fields
    const refused = await wb.send(line, sent)
    expect([line, refused.status]).toEqual([line, 400])
    exactly(refused.body, failure('validation_error'))
    expect((refused.body.error as { message: string }).message).toContain(name)
    expect(refused.text).not.toContain('sk-plain-secret')
  }
  exactly((await wb.send(`GET ${path}`)).body, { items: [body], nextCursor: null })
})

test.each([
  ['auth', { auth: { mode: 'apiKey', anonymousPolicy: 'allow' } }],
  ['blockPrivateNetworkEndpoints', { runtime: { blockPrivateNetworkEndpoints: true } }],
])('with %s, rejects a private address that the operator has not allowed', async (_, config) => {
  const allowed = {
    runtime: { ...('runtime' in config && config.runtime), allowedEndpoints: ['10.0.0.7:8080'] },
  }
  const { wb, path } = await place({ config: { ...config, ...allowed } })
  for (const address of ['http://localhost:1/', 'http://127.1/', 'http://10.0.0.8/', 'http://[fd00::1]/']) {
    const { status, body } = await wb.send(`POST ${path}`, { label: 'tools', url: address })
    expect([address, status]).toEqual([address, 400])
    const { message, hint } = body.error as { message: string; hint: string }
    expect(message).toMatch(/^url: .* resolves to a private address$/)
    expect(hint).toContain('runtime.allowedEndpoints')
  }
  await register(wb, path, { url: 'http://10.0.0.7:8080/mcp' })
})

test.each([
  'api_key',
  'API-Key',
  'token',
  'access_token',
  'key',
  'secret',
  'password',
  'sig',
  'tavilyApiKey',
  'api%5Fkey',
])('POST and PATCH reject a URL with a secret as %s and do not repeat it', async name => {
  const { wb, path } = await place()
  const { body, one } = await register(wb, path)
  const sent = { label: 'tools', url: `${url}?page=2&${name}=sk-plain-secret` }
  for (const line of [`POST ${path}`, `PATCH ${one}`]) {
    const refused = await wb.send(line, sent)
    expect([line, refused.status]).toEqual([line, 400])
    exactly(refused.body, failure('validation_error'))
    expect(refused.text).not.toContain('sk-plain-secret')
  }
  exactly((await wb.send(`GET ${path}`)).body, { items: [body], nextCursor: null })
})

test('the error for a secret in a URL recommends credentialRef; other parameters are accepted', async () => {
  const { wb, path } = await place()
  const { body } = await wb.send(`POST ${path}`, { label: 'tools', url: `${url}?tavilyApiKey=hunter2` })
  expect(body.error).toMatchObject({
    message: 'url: the parameter tavilyApiKey must not be in a URL, because it contains a secret',
    hint: expect.stringContaining('set credentialRef to a reference, for example env:TOOLS_KEY'),
  })
  const plain = `${url}?monkey=1&tokens=5&keys=a&api_key=`
  expect((await register(wb, path, { url: plain })).body.url).toBe(plain)
})

test('a secret in the URL of a stored server is used and not shown', async () => {
  const seen: string[] = []
  const intercept = (request: Request) => {
    seen.push(new URL(request.url).search)
    return undefined
  }
  const tools = await startMcpServer({ intercept })
  const { wb, path, workspaceId, rows } = await placeWithRows()
  const { body, one } = await register(wb, path)
  const key = [workspaceId, String(body.mcpServerId)]
  const stored = async () => (await rows.get(tables.mcpServers, key))!.row
  const old = { ...(await stored()), url: `${tools.url}?page=2&api_key=hunter%32&x=1` }
  await rows.atomic([{ op: 'replace', table: tables.mcpServers, row: old }])

  const shown = `${tools.url}?page=2&api_key=[redacted]&x=1`
  expect((await wb.send(`GET ${one}`)).body.url).toBe(shown)
  expect((await wb.send(`GET ${path}`)).body.items).toMatchObject([{ url: shown }])
  expect((await wb.send(`PATCH ${one}`, { label: 'renamed' })).body).toMatchObject({
    label: 'renamed',
    url: shown,
  })
  expect((await wb.send(`POST ${one}/test-connection`)).body.ok).toBe(true)
  expect(new Set(seen)).toEqual(new Set([new URL(old.url).search]))

  expect((await wb.send(`PATCH ${one}`, { url: shown, enabled: false })).body).toMatchObject({
    url: shown,
    enabled: false,
  })
  expect((await stored()).url).toBe(old.url)
  const moved = await wb.send(`PATCH ${one}`, { url: shown.replace('/mcp', '/other') })
  expect([moved.status, moved.body.error]).toEqual([
    400,
    expect.objectContaining({ code: 'validation_error' }),
  ])
  expect((await stored()).url).toBe(old.url)
})

test('stored tool reviews are not returned, survive a change, and are deleted when the URL changes', async () => {
  const { wb, path, workspaceId, rows } = await placeWithRows()
  const { body, one } = await register(wb, path)
  const stored = async () => (await rows.get(tables.mcpServers, [workspaceId, String(body.mcpServerId)]))!.row
  const reviewedTools = { search: { hash: 'sha256:1', description: 'searches' } }
  const row = { ...(await stored()), reviewedTools }
  await rows.atomic([{ op: 'replace', table: tables.mcpServers, row }])
  for (const fields of [{ label: 'renamed' }, { url }]) {
    const { text } = await wb.send(`PATCH ${one}`, fields)
    expect(text).not.toContain('reviewed')
    expect(await stored()).toMatchObject({ reviewedTools })
  }
  await wb.send(`PATCH ${one}`, { url: 'https://elsewhere.example.com/mcp' })
  expect(await stored()).toMatchObject({ reviewedTools: null })
})

test('a test connection lists all tools of the server, including those that are not allowed', async () => {
  const tools = await startMcpServer({ tools: ['search', 'add', 'query'] })
  const { wb, path } = await place({ config: { runtime: { allowedEndpoints: [tools.host] } } })
  const { one } = await register(wb, path, { url: tools.url, allowedTools: ['add'] })
  const { status, body } = await wb.send(`POST ${one}/test-connection`)
  expect(status).toBe(200)
  const { latencyMs, ...rest } = body
  exactly(rest, { ok: true, toolCount: 3, tools: ['add', 'query', 'search'], error: null })
  expect(latencyMs).toBeGreaterThan(0)
})

test('a failed test connection returns 200, with a code and a message of the runtime', async () => {
  const tools = await startMcpServer({
    intercept: () => new Response('secret words of the server', { status: 401 }),
  })
  const { wb, path } = await place()
  const { one } = await register(wb, path, { url: tools.url })
  const { status, body, text } = await wb.send(`POST ${one}/test-connection`)
  expect([status, body.ok, body.toolCount, body.tools]).toEqual([200, false, 0, []])
  expect(body.error).toMatchObject({ code: 'unauthorized', message: expect.stringContaining('status 401') })
  expect(text).not.toContain('secret words')
})

test('a credential is sent only to a host that it is released for, and the error explains how to release it', async () => {
  const tools = await startMcpServer()
  const environment = { TOOLS_KEY: 'tool-server-secret' }
  const { wb, path } = await place({ environment })
  const { one } = await register(wb, path, { url: tools.url, credentialRef: 'env:TOOLS_KEY' })
  const { body } = await wb.send(`POST ${one}/test-connection`)
  expect(body.error).toMatchObject({
    code: 'credential_unavailable',
    message: expect.stringContaining(`wb services allow env:TOOLS_KEY --host ${tools.host}`),
  })
  expect(tools.received).toEqual([])
  const allow = [{ ref: 'env:TOOLS_KEY', hosts: [tools.host] }]
  const released = await place({ environment, config: { runtime: { secretRefs: { allow } } } })
  const second = await register(released.wb, released.path, {
    url: tools.url,
    credentialRef: 'env:TOOLS_KEY',
  })
  expect((await released.wb.send(`POST ${second.one}/test-connection`)).body.ok).toBe(true)
  expect(tools.received[0]!.authorization).toBe('Bearer tool-server-secret')
})

test('a name that resolves to a private address is rejected on connect if authentication is enabled', async () => {
  const config = { auth: { mode: 'apiKey', anonymousPolicy: 'allow' } }
  const { wb, path } = await place({ config, resolve: async () => ['127.0.0.1'] })
  const { one } = await register(wb, path, { url: 'http://tools.example.com/mcp' })
  const { body } = await wb.send(`POST ${one}/test-connection`)
  expect(body.error).toMatchObject({
    code: 'endpoint_refused',
    message: expect.stringContaining('"tools.example.com:80" to runtime.allowedEndpoints'),
  })
})
