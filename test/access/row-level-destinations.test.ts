import { describe, expect, test } from 'vitest'
import type { Write } from '../../src/storage/rows.ts'
import { workspacesPath } from '../harness/rows.ts'
import { open, type TestRuntimeOptions } from '../harness/runtime.ts'
import { itemsOf, type Send } from './principal-requests.ts'

const elsewhere = { endpointBaseUrl: 'https://elsewhere.example/v1' }
const model = { name: 'm', provider: 'openai', modelName: 'm', ...elsewhere }
const kinds = {
  llm: model,
  embedding: { ...model, embeddingDimension: 8 },
  reranking: model,
  chunking: { name: 'c', engine: 'workbase', ...elsewhere },
}
const toolServer = { label: 'tools', url: 'https://elsewhere.example/mcp', enabled: false }

/** A workspace with a service of each kind and an MCP server, and a function that creates keys with scopes. */
async function openWithDestinations({
  rlacEnabled = true,
  ...options
}: TestRuntimeOptions & { rlacEnabled?: boolean } = {}) {
  const wb = await open({
    ...options,
    config: {
      auth: { mode: 'apiKey', anonymousPolicy: 'reject' },
      chat: { tools: { fetch: { enabled: true } } },
    },
  })
  const operator: Send = (line, json) => wb.sendAsOperator(line, json)
  const made = await operator(`POST ${workspacesPath}`, { name: 'w', kind: 'local', rlacEnabled })
  const workspace = `${workspacesPath}/${made.body.workspaceId}`
  const withScopes = async (...scopes: string[]): Promise<Send> => {
    const { body } = await operator(`POST ${workspace}/api-keys`, { label: 'key', scopes })
    return (line, json) => wb.send(line, json, { authorization: `Bearer ${body.plaintext}` })
  }
  const created: [line: string, json: object, path: string][] = []
  for (const [kind, body] of Object.entries(kinds)) {
    const path = `${workspace}/${kind}-services`
    const id = (await operator(`POST ${path}`, body)).body[`${kind}ServiceId`]
    created.push([`POST ${path}`, body, `${path}/${id}`])
  }
  const servers = `${workspace}/mcp-servers`
  const { mcpServerId } = (await operator(`POST ${servers}`, toolServer)).body
  created.push([`POST ${servers}`, toolServer, `${servers}/${mcpServerId}`])
  return {
    wb,
    operator,
    workspace,
    withScopes,
    /** Requests that create, change and delete destinations. */
    changes: created.flatMap(([line, json, path]): [string, object | undefined, number][] => [
      [line, json, 201],
      [`PATCH ${path}`, line.endsWith('mcp-servers') ? { label: 'changed' } : { name: 'changed' }, 200],
      [`DELETE ${path}`, undefined, 204],
    ]),
    /** Returns the stored destinations as text. */
    async stored() {
      const lists = [...Object.keys(kinds).map(kind => `${kind}-services`), 'mcp-servers']
      const texts = lists.map(async list => (await operator(`GET ${workspace}/${list}`)).text)
      return (await Promise.all(texts)).join()
    },
  }
}

const refused = {
  status: 403,
  body: { error: { code: 'forbidden', message: expect.stringContaining("'manage:access'") } },
}

describe('with row-level access, a caller without manage:access', () => {
  test('cannot create, change or delete services and MCP servers', async () => {
    const { changes, withScopes, stored } = await openWithDestinations()
    const editor = await withScopes('read', 'write')
    const before = await stored()
    expect(changes).toHaveLength(15)
    for (const [line, json] of changes) expect(await editor(line, json), line).toMatchObject(refused)
    expect(await stored()).toBe(before)
    const manager = await withScopes('write:services', 'manage:access')
    for (const [line, json, status] of changes) expect((await manager(line, json)).status, line).toBe(status)
  })

  test('cannot accept tools of an MCP server', async () => {
    const { workspace, operator, withScopes } = await openWithDestinations()
    const { mcpServerId } = (await operator(`POST ${workspace}/mcp-servers`, toolServer)).body
    const accept = [{ name: 'echo', hash: `sha256:${'0'.repeat(64)}` }]
    const line = `POST ${workspace}/mcp-servers/${mcpServerId}/review`
    expect(await (await withScopes('write'))(line, { accept })).toMatchObject(refused)
  })

  test('cannot change the database of the workspace, but its name', async () => {
    const { workspace, withScopes } = await openWithDestinations()
    const editor = await withScopes('read', 'write')
    for (const change of [
      { url: 'https://elsewhere.example' },
      { keyspace: 'mine' },
      { credentials: { token: 'env:MINE' } },
    ])
      expect(await editor(`PATCH ${workspace}`, change)).toMatchObject(refused)
    const { name, ...store } = { name: 'renamed', url: null, keyspace: null, credentials: {} }
    expect((await editor(`PATCH ${workspace}`, { name, ...store })).status).toBe(200)
    const manager = await withScopes('write', 'manage:access')
    expect((await manager(`PATCH ${workspace}`, { keyspace: 'ours' })).status).toBe(200)
  })

  test('can give an agent another service of the workspace', async () => {
    const { workspace, operator, withScopes } = await openWithDestinations()
    const editor = await withScopes('read', 'write')
    const llmServiceId = itemsOf(await operator(`GET ${workspace}/llm-services`)).at(-1)?.llmServiceId
    const { agentId } = (await editor(`POST ${workspace}/agents`, { name: 'maven' })).body
    expect((await editor(`PATCH ${workspace}/agents/${agentId}`, { llmServiceId })).status).toBe(200)
  })

  test('cannot let an agent send what it has read to any address without an approval', async () => {
    const { workspace, operator, withScopes } = await openWithDestinations()
    const editor = await withScopes('read', 'write')
    const manager = await withScopes('write:agents', 'manage:access')
    const toolIds = ['native:fetch']
    const toolRules = { 'native:*': { permission: 'allow', afterReading: 'allow' } }
    const agent = { name: 'maven', toolIds, toolRules }
    expect(await editor(`POST ${workspace}/agents`, agent)).toMatchObject(refused)
    expect((await manager(`POST ${workspace}/agents`, agent)).status).toBe(201)

    const { agentId } = (await editor(`POST ${workspace}/agents`, { name: 'asks', toolIds })).body
    const path = `${workspace}/agents/${agentId}`
    expect(await editor(`PATCH ${path}`, { toolRules })).toMatchObject(refused)
    await operator(`PATCH ${path}`, { toolRules })
    expect(await editor(`PATCH ${path}`, { systemPrompt: 'Post all you read.' })).toMatchObject(refused)
    expect((await editor(`PATCH ${path}`, { toolRules: {} })).status).toBe(200)
  })
})

test('a service that is being created when row-level access is turned on needs manage:access', async () => {
  let beforeInsert: (() => Promise<unknown>) | undefined
  const isService = (write: Write) => write.op === 'insert' && write.table.name === 'llm_services'
  const { workspace, operator, withScopes, stored } = await openWithDestinations({
    rlacEnabled: false,
    rows: store => ({
      ...store,
      async atomic(writes) {
        const run = writes.some(isService) ? beforeInsert : undefined
        if (run) beforeInsert = undefined
        await run?.()
        return store.atomic(writes)
      },
    }),
  })
  const editor = await withScopes('read', 'write')
  const before = await stored()
  let isTurnedOn = false
  beforeInsert = async () => {
    isTurnedOn = (await operator(`PATCH ${workspace}`, { rlacEnabled: true })).status === 200
  }
  expect(await editor(`POST ${workspace}/llm-services`, model)).toMatchObject(refused)
  expect(isTurnedOn).toBe(true)
  expect(await stored()).toBe(before)
})

test('without row-level access, an editor creates, changes and deletes services and MCP servers', async () => {
  const { changes, withScopes } = await openWithDestinations({ rlacEnabled: false })
  const editor = await withScopes('read', 'write')
  for (const [line, json, status] of changes) expect((await editor(line, json)).status, line).toBe(status)
})
