import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type ChatServer, type ChatStep, refusals, startChatServer } from '../fakes/chat-server.ts'
import { open, type TestRuntime } from '../harness/runtime.ts'
import { exactly } from './exactly.ts'
import { failure, llmService } from './shapes.ts'

let provider: ChatServer
let wb: TestRuntime
let services: string

beforeEach(async () => {
  provider = await startChatServer()
  wb = await open({
    environment: { CHAT_KEY: 'sk-of-the-chat', EMPTY_KEY: '' },
    config: {
      runtime: {
        secretRefs: {
          allow: ['env:CHAT_KEY', 'env:EMPTY_KEY'].map(ref => ({ ref, hosts: [provider.host] })),
        },
      },
    },
  })
  const { workspaceId } = (await wb.send('POST /api/v1/workspaces', { name: 'here' })).body
  services = `/api/v1/workspaces/${workspaceId}/llm-services`
})
afterEach(() => provider.close())

const fields = () => ({
  name: 'talks',
  provider: 'openai',
  modelName: 'nope',
  endpointBaseUrl: provider.url,
  credentialRef: 'env:CHAT_KEY',
})

async function listed(): Promise<unknown> {
  return (await wb.send(`GET ${services}`)).body.items
}

describe('a model that the provider rejects permanently', () => {
  test.each([
    ['S7.3-llm_model_unavailable', 'unknownModel', 'llm_model_unavailable'],
    ['S7.3-llm_model_unavailable', 'noEndpoint', 'llm_model_unavailable'],
    ['S7.3-llm_model_not_chat', 'notChat', 'llm_model_not_chat'],
  ] as const)('%s: %s is not stored by POST and PATCH', async (_id, refusal, code) => {
    const made = await wb.send(`POST ${services}`, fields())
    exactly(made.body, llmService(fields()))
    const before = await listed()
    const path = `${services}/${made.body.llmServiceId}`
    for (const [line, json] of [
      [`POST ${services}`, fields()],
      [`PATCH ${path}`, { modelName: 'other' }],
      [`PATCH ${path}`, { provider: 'openrouter' }],
      [`PATCH ${path}`, { credentialRef: 'env:CHAT_KEY' }],
      [`PATCH ${path}`, { endpointBaseUrl: provider.url }],
    ] as const) {
      provider.script(refusals[refusal])
      const refused = await wb.send(line, json)
      expect(refused.status, line).toBe(422)
      exactly(refused.body, failure(code))
      expect((refused.body.error as { message: string }).message).not.toMatch(/sk-|v1\/|endpoint/)
    }
    expect(await listed()).toEqual(before)
  })
})

test('sends a request for one token with the credential of the service', async () => {
  await wb.send(`POST ${services}`, fields())
  expect(provider.received).toMatchObject([
    {
      line: 'POST /v1/chat/completions',
      headers: { authorization: 'Bearer sk-of-the-chat' },
      body: { model: 'nope', max_tokens: 1 },
    },
  ])
})

const unknownModel: ChatStep['body'] = refusals.unknownModel.body

describe('other responses of the provider do not prevent the write', () => {
  test.each<[string, ChatStep]>([
    ['a provider with trouble of its own', { status: 503, body: unknownModel }],
    ['a credential that it refuses', { status: 401, body: unknownModel }],
    ['a limit', { status: 429, headers: { 'retry-after': '60' }, body: unknownModel }],
    ['a page that is not there', { status: 404, body: '<html>' }],
    ['a parameter that the model does not know', { status: 400, body: { error: { message: 'max_tokens' } } }],
    ['no JSON', { status: 200, body: 'hello' }],
    ['a redirect', { status: 307, headers: { location: 'http://169.254.169.254/' }, body: unknownModel }],
  ])('%s', async (_what, step) => {
    provider.script(step)
    const { status, body } = await wb.send(`POST ${services}`, fields())
    expect(status).toBe(201)
    exactly(body, llmService(fields()))
    expect(provider.received).toHaveLength(1)
  })

  test('a request to a silent provider times out after a few seconds', { timeout: 20_000 }, async () => {
    provider.script({ hang: true })
    expect((await wb.send(`POST ${services}`, fields())).status).toBe(201)
  })

  test.each([
    ['no credential', { credentialRef: null }],
    ['a credential that leads to nothing', { credentialRef: 'env:EMPTY_KEY' }],
    ['a credential that is not released', { credentialRef: 'file:/etc/hostname' }],
    ['a provider that needs none', { provider: 'ollama' }],
    ['a provider that the runtime cannot call', { provider: 'somebody' }],
  ])('%s is stored without a request', async (_what, more) => {
    expect((await wb.send(`POST ${services}`, { ...fields(), ...more })).status).toBe(201)
    expect(provider.received).toEqual([])
  })

  test('a change of unrelated fields is stored without a request', async () => {
    const { llmServiceId } = (await wb.send(`POST ${services}`, fields())).body
    provider.received.length = 0
    const patch = { name: 'other', maxOutputTokens: 5, status: 'deprecated' }
    expect((await wb.send(`PATCH ${services}/${llmServiceId}`, patch)).status).toBe(200)
    expect(provider.received).toEqual([])
  })
})

test('S2.2-35 S2.2-36: a changed value behind a reference applies from the next use, and no file of the store contains it', async () => {
  const { workspaceId } = (await wb.send('POST /api/v1/workspaces', { name: 'with files' })).body
  const folder = `${wb.dataDir}/secrets/${workspaceId}`
  mkdirSync(folder, { recursive: true })
  writeFileSync(`${folder}/key`, 'sk-before-0123456789')
  const own = `/api/v1/workspaces/${workspaceId}/llm-services`
  const credentialRef = `file:${folder}/key`
  const made = await wb.send(`POST ${own}`, { ...fields(), credentialRef })
  writeFileSync(`${folder}/key`, 'sk-after-0123456789')
  await wb.send(`PATCH ${own}/${made.body.llmServiceId}`, { modelName: 'nope' })
  expect(provider.received.map(({ headers }) => headers.authorization)).toEqual([
    'Bearer sk-before-0123456789',
    'Bearer sk-after-0123456789',
  ])
  expect((await wb.send(`GET ${own}/${made.body.llmServiceId}`)).body.credentialRef).toBe(credentialRef)
  await wb.close()
  for (const name of readdirSync(wb.dataDir).filter(file => file.startsWith('workbase.db')))
    expect(readFileSync(`${wb.dataDir}/${name}`, 'latin1')).not.toMatch(/sk-(before|after|of-the-chat)/)
})
