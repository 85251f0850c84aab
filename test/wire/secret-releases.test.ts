import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { tables } from '../../src/storage/tables.ts'
import { type ChatServer, startChatServer } from '../fakes/chat-server.ts'
import {
  open,
  scratchDir,
  type TestResponse,
  type TestRuntime,
  type TestRuntimeOptions,
} from '../harness/runtime.ts'
import { exactly, isoMs, matching } from './exactly.ts'
import { failure, unknownId } from './shapes.ts'

const releases = '/api/v1/secret-releases'
const bootstrap = 'the-token-of-the-operator-of-these-tests'
const uuid = matching(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-8[0-9a-f]{3}-[0-9a-f]{12}$/)

let provider: ChatServer
beforeEach(async () => {
  provider = await startChatServer()
})
afterEach(() => provider.close())

/** A runtime that requires credentials, with API keys in its environment. */
function closed(options: TestRuntimeOptions = {}): Promise<TestRuntime> {
  return open({
    environment: { FIRST: bootstrap, TEAM_KEY: 'sk-team-0123456789', FIRST_KEY: 'sk-first' },
    config: {
      auth: { mode: 'apiKey', anonymousPolicy: 'reject', bootstrapTokenRef: 'env:FIRST' },
      runtime: { allowedEndpoints: ['127.0.0.1'] },
    },
    ...options,
  })
}

async function workspaceOf(wb: TestRuntime, name = 'here'): Promise<string> {
  return String((await wb.sendAsOperator('POST /api/v1/workspaces', { name })).body.workspaceId)
}

/** Creates a service, which calls the model if its credential is released. */
function probe(wb: TestRuntime, workspaceId: string, credentialRef = 'env:TEAM_KEY'): Promise<TestResponse> {
  const body = {
    name: 'one',
    provider: 'openai',
    modelName: 'm',
    endpointBaseUrl: provider.url,
    credentialRef,
  }
  return wb.sendAsOperator(`POST /api/v1/workspaces/${workspaceId}/llm-services`, body)
}

const keysSent = () => provider.received.map(({ headers }) => headers.authorization)

describe('releasing a secret [security rule 1]', () => {
  test('applies from the next use, to one host, until it is revoked', async () => {
    const wb = await closed()
    const workspaceId = await workspaceOf(wb)
    await probe(wb, workspaceId)
    expect(keysSent()).toEqual([])

    await wb.sendAsOperator(`POST ${releases}`, { ref: 'env:TEAM_KEY', host: 'elsewhere.example.com' })
    await wb.sendAsOperator(`POST ${releases}`, { ref: 'env:TEAM_KEY', host: '127.0.0.1' })
    await probe(wb, workspaceId)
    expect(keysSent()).toEqual([])

    const act = { ref: 'env:TEAM_KEY', host: provider.host }
    const made = await wb.sendAsOperator(`POST ${releases}`, act)
    expect(made.status).toBe(201)
    exactly(made.body, { releaseId: uuid, ...act, workspaceId: null, createdAt: isoMs })
    await probe(wb, workspaceId)
    await probe(wb, workspaceId, 'env:FIRST_KEY')
    expect(keysSent()).toEqual(['Bearer sk-team-0123456789'])

    const { body } = await wb.sendAsOperator(`GET ${releases}`)
    expect((body.items as unknown[]).at(-1)).toEqual(made.body)
    expect(body.items).toHaveLength(3)
    expect((await wb.sendAsOperator(`DELETE ${releases}/${made.body.releaseId}`)).status).toBe(204)
    await probe(wb, workspaceId)
    expect(keysSent()).toHaveLength(1)
  })

  test('does not apply to another workspace', async () => {
    const wb = await closed()
    const [mine, other] = [await workspaceOf(wb, 'mine'), await workspaceOf(wb, 'other')]
    await wb.sendAsOperator(`POST ${releases}`, {
      ref: 'env:TEAM_KEY',
      host: provider.host,
      workspaceId: mine,
    })
    await probe(wb, other)
    expect(keysSent()).toEqual([])
    await probe(wb, mine)
    expect(keysSent()).toHaveLength(1)
  })

  test('applies in another process of the data directory without a restart', async () => {
    const wb = await closed()
    const workspaceId = await workspaceOf(wb)
    const beside = await closed({ dataDir: wb.dataDir })
    await beside.sendAsOperator(`POST ${releases}`, { ref: 'env:TEAM_KEY', host: provider.host })
    await probe(wb, workspaceId)
    expect(keysSent()).toHaveLength(1)
  })

  test('is rejected for secrets that the configuration uses, under any name', async () => {
    const wb = await closed()
    const workspaceId = await workspaceOf(wb)
    for (const ref of ['env:FIRST', 'env:first', 'file:/proc/self/environ']) {
      const refused = await wb.sendAsOperator(`POST ${releases}`, { ref, host: provider.host })
      expect(refused.status, ref).toBe(400)
      exactly(refused.body, failure('validation_error'))
      expect(refused.text).toContain('"message":"ref: ')
      await probe(wb, workspaceId, ref)
    }
    expect(keysSent()).toEqual([])
    expect((await wb.sendAsOperator(`GET ${releases}`)).body.items).toEqual([])
  })

  test('ends when the configuration uses the secret', async () => {
    const folder = scratchDir()
    const dataDir = join(folder, 'data')
    const before = await closed({
      dataDir,
      config: { auth: { mode: 'apiKey' }, runtime: { allowedEndpoints: ['127.0.0.1'] } },
    })
    const workspaceId = await workspaceOf(before)
    await before.sendAsOperator(`POST ${releases}`, { ref: 'env:FIRST', host: provider.host })
    await probe(before, workspaceId, 'env:FIRST')
    expect(keysSent()).toHaveLength(1)
    await before.close()
    await probe(await closed({ dataDir }), workspaceId, 'env:FIRST')
    expect(keysSent()).toHaveLength(1)
  })

  test('compares files by their normalized path', async () => {
    const wb = await closed()
    const workspaceId = await workspaceOf(wb)
    const folder = scratchDir()
    mkdirSync(join(folder, 'keys'))
    writeFileSync(join(folder, 'keys', 'one'), 'sk-from-a-file\n')
    const made = await wb.sendAsOperator(`POST ${releases}`, {
      ref: `file:${folder}//keys/./one`,
      host: provider.host.toUpperCase(),
    })
    expect(made.body).toMatchObject({ ref: `file:${folder}/keys/one`, host: provider.host })
    await probe(wb, workspaceId, `file:${folder}/./keys//one`)
    expect(keysSent()).toEqual(['Bearer sk-from-a-file'])
  })
})

describe('permission to release', () => {
  const act = { ref: 'env:TEAM_KEY', host: 'collector.example.com' }

  test('with authentication disabled, HTTP requests cannot release; the owner of the data directory can', async () => {
    const wb = await open({ environment: { TEAM_KEY: 'sk-team' } })
    for (const [line, json] of [
      [`POST ${releases}`, act],
      [`GET ${releases}`, undefined],
      [`DELETE ${releases}/${unknownId}`, undefined],
    ] as const)
      for (const headers of [undefined, { authorization: `Bearer ${bootstrap}` }]) {
        const refused = await wb.send(line, json, headers)
        expect(refused.status, line).toBe(401)
        expect(refused.text).toContain('--as-operator')
      }
    expect((await wb.sendAsOperator(`POST ${releases}`, act)).status).toBe(201)
  })

  test('with authentication, operators can release; anonymous callers and keys of a workspace cannot', async () => {
    const wb = await closed({
      config: { auth: { mode: 'apiKey', anonymousPolicy: 'allow', bootstrapTokenRef: 'env:FIRST' } },
    })
    const workspaceId = await workspaceOf(wb)
    const { body } = await wb.sendAsOperator(`POST /api/v1/workspaces/${workspaceId}/api-keys`, {
      label: 'admin',
      role: 'admin',
    })
    const as = (token: string) => wb.send(`POST ${releases}`, act, { authorization: `Bearer ${token}` })
    expect((await wb.send(`POST ${releases}`, act)).status).toBe(401)
    expect((await as(String(body.plaintext))).status).toBe(403)
    expect((await as(bootstrap)).status).toBe(201)
  })
})

test('a release and its revocation are audited, and fail if the audit record cannot be written', async () => {
  let broken = false
  const wb = await closed({
    rows: rows =>
      Object.assign(Object.create(rows) as typeof rows, {
        async atomic(writes: Parameters<typeof rows.atomic>[0]) {
          if (broken && writes.some(({ table }) => table === tables.audit)) throw new Error('no room')
          return rows.atomic(writes)
        },
      }),
  })
  const workspaceId = await workspaceOf(wb)
  const act = { ref: 'env:TEAM_KEY', host: 'models.example.com', workspaceId }
  const { releaseId } = (await wb.sendAsOperator(`POST ${releases}`, act)).body
  await wb.sendAsOperator(`DELETE ${releases}/${releaseId}`)
  const { items } = (await wb.sendAsOperator('GET /api/v1/audit?limit=2')).body
  const details = { releaseId, ref: 'env:TEAM_KEY', host: 'models.example.com' }
  expect(items).toMatchObject([
    { action: 'secret.withdraw', workspaceId, details, subject: { type: 'system' } },
    { action: 'secret.release', workspaceId, details, subject: { type: 'system' } },
  ])
  broken = true
  expect((await wb.sendAsOperator(`POST ${releases}`, act)).status).toBeGreaterThanOrEqual(500)
  broken = false
  expect((await wb.sendAsOperator(`GET ${releases}`)).body.items).toEqual([])
})

describe('invalid releases', () => {
  test('rejects an existing release, an unknown one, and an unknown workspace', async () => {
    const wb = await closed()
    const act = { ref: 'env:TEAM_KEY', host: 'models.example.com' }
    await wb.sendAsOperator(`POST ${releases}`, act)
    const same = await wb.sendAsOperator(`POST ${releases}`, { ...act, host: 'MODELS.example.com:443' })
    expect(same.status).toBe(409)
    exactly(same.body, failure('conflict'))
    const gone = await wb.sendAsOperator(`DELETE ${releases}/${unknownId}`)
    expect(gone.status).toBe(404)
    exactly(gone.body, failure('secret_release_not_found'))
    const nowhere = await wb.sendAsOperator(`POST ${releases}`, { ...act, workspaceId: unknownId })
    expect(nowhere.status).toBe(404)
    exactly(nowhere.body, failure('workspace_not_found'))
    expect((await wb.sendAsOperator(`GET ${releases}`)).body.items).toHaveLength(1)
  })

  test.each([
    ['ref', {}],
    ['ref', { ref: 'sk-raw' }],
    ['ref', { ref: 5 }],
    ['host', { host: undefined }],
    ['host', { host: '' }],
    ['host', { host: 'a b' }],
    ['host', { host: 'https://models.example.com' }],
    ['host', { host: 'models.example.com/path' }],
    ['host', { host: 'user@models.example.com' }],
    ['host', { host: '*.example.com' }],
    ['host', { host: 'models.example.com:port' }],
    ['host', { host: 'models.example.com?q' }],
    ['host', { host: 'a'.repeat(254) }],
    ['host', { host: `${'a'.repeat(250)}.example` }],
    ['host', { host: 'a'.repeat(9_000) }],
    ['workspaceId', { workspaceId: 'nope' }],
    ['colour', { colour: 'red' }],
  ])('rejects %s, such as %j', async (field, spoilt) => {
    const wb = await closed()
    const valid = { ref: 'env:TEAM_KEY', host: 'models.example.com' }
    const body = Object.keys(spoilt).length === 0 ? { host: valid.host } : { ...valid, ...spoilt }
    const refused = await wb.sendAsOperator(`POST ${releases}`, body)
    expect(refused.status, refused.text).toBe(400)
    exactly(refused.body, failure('validation_error'))
    expect((refused.body.error as { message: string }).message).toContain(field)
    expect((await wb.sendAsOperator(`GET ${releases}`)).body.items).toEqual([])
  })
})
