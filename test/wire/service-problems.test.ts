import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { type ChatServer, startChatServer } from '../fakes/chat-server.ts'
import { open, type TestRuntime } from '../harness/runtime.ts'
import { exactly } from './exactly.ts'
import { llmService } from './shapes.ts'

let provider: ChatServer
let wb: TestRuntime
let workspace: string

beforeEach(async () => {
  provider = await startChatServer()
  wb = await open({
    environment: { GIVEN: 'sk-given', EMPTY: '' },
    config: {
      runtime: {
        secretRefs: {
          allow: ['env:GIVEN', 'env:EMPTY', 'env:UNSET'].map(ref => ({ ref, hosts: [provider.host] })),
        },
      },
    },
  })
  const { workspaceId } = (await wb.send('POST /api/v1/workspaces', { name: 'here' })).body
  workspace = `/api/v1/workspaces/${workspaceId}`
})
afterEach(() => provider.close())

const own = () => provider.url

type Case = [what: string, fields: () => Record<string, unknown>, message: RegExp | null, hint: RegExp]
const anything = /\S/

const cases: readonly Case[] = [
  [
    'a server of your own without a key',
    () => ({ provider: 'openai', endpointBaseUrl: own() }),
    null,
    anything,
  ],
  [
    'the same through OpenRouter’s wire',
    () => ({ provider: 'openrouter', endpointBaseUrl: own() }),
    null,
    anything,
  ],
  ['Ollama', () => ({ provider: 'ollama' }), null, anything],
  [
    'a key that is released and there',
    () => ({ provider: 'openai', endpointBaseUrl: own(), credentialRef: 'env:GIVEN' }),
    null,
    anything,
  ],
  [
    'OpenAI without a key',
    () => ({ provider: 'openai' }),
    /\(openai\) has no credential, and api\.openai\.com requires one$/,
    /credentialRef, for example with: wb services update .* --credential env:OPENAI_API_KEY/,
  ],
  [
    'a reference that leads to nothing',
    () => ({ provider: 'openai', endpointBaseUrl: own(), credentialRef: 'env:UNSET' }),
    /cannot use its credential: env:UNSET is not set$/,
    /Set UNSET where the runtime is started/,
  ],
  [
    'a variable that is empty',
    () => ({ provider: 'openai', endpointBaseUrl: own(), credentialRef: 'env:EMPTY' }),
    /cannot use its credential: env:EMPTY is not set$/,
    anything,
  ],
  [
    'a reference that is not released',
    () => ({
      provider: 'openai',
      endpointBaseUrl: 'https://models.example.com/v1',
      credentialRef: 'env:GIVEN',
    }),
    /uses env:GIVEN, which is not released for models\.example\.com$/,
    /wb services allow env:GIVEN --host models\.example\.com/,
  ],
  [
    'a provider that is not called',
    () => ({ provider: 'elsewhere' }),
    /provider that this runtime cannot call$/,
    anything,
  ],
]

describe.each([
  ['LLM', 'llm-services', 'llmServiceId', {}],
  ['embedding', 'embedding-services', 'embeddingServiceId', { embeddingDimension: 8 }],
] as const)(
  'the problem of a service of kind %s is found without a request to the provider',
  (_kind, path, id, more) => {
    test.each(cases)('%s', async (_what, fields, message, hint) => {
      const body = { name: 'the service', modelName: 'm', ...more, ...fields() }
      const made = await wb.send(`POST ${workspace}/${path}`, body)
      expect(made.status, made.text).toBe(201)
      const one = `${workspace}/${path}/${made.body[id]}`
      provider.received.length = 0
      const { problem, ...record } = (await wb.send(`GET ${one}?includeProblem=true`)).body
      exactly(record, made.body)
      if (message === null) expect(problem).toBeNull()
      else
        expect(problem).toEqual({
          message: expect.stringMatching(message),
          hint: expect.stringMatching(hint),
        })
      if (message !== null) expect((problem as { message: string }).message).toContain('"the service"')
      expect(provider.received).toEqual([])
      expect(JSON.stringify(problem)).not.toContain('sk-given')
    })

    test('is shown on request only', async () => {
      const body = { name: 'x', modelName: 'm', provider: 'openai', ...more }
      const made = await wb.send(`POST ${workspace}/${path}`, body)
      expect(made.body).not.toHaveProperty('problem')
      const one = `${workspace}/${path}/${made.body[id]}`
      exactly((await wb.send(`GET ${one}`)).body, made.body)
      exactly((await wb.send(`GET ${one}?includeProblem=false`)).body, made.body)
    })
  },
)

test('the built-in embedder has no problem', async () => {
  const [builtIn] = (await wb.send(`GET ${workspace}/embedding-services`)).body.items as object[]
  const { embeddingServiceId } = builtIn as { embeddingServiceId: string }
  const shown = await wb.send(`GET ${workspace}/embedding-services/${embeddingServiceId}?includeProblem=true`)
  expect(shown.body.problem).toBeNull()
})

test('an agent calls a server without a key without an Authorization header', async () => {
  const fields = { name: 'studio', provider: 'openai', modelName: 'local', endpointBaseUrl: provider.url }
  const made = await wb.send(`POST ${workspace}/llm-services`, fields)
  exactly(made.body, llmService(fields))
  expect(provider.received).toEqual([])
  const { agentId } = (
    await wb.send(`POST ${workspace}/agents`, { name: 'a', llmServiceId: made.body.llmServiceId })
  ).body
  const conversations = `${workspace}/agents/${agentId}/conversations`
  const { conversationId } = (await wb.send(`POST ${conversations}`, {})).body
  const sent = await wb.send(`POST ${conversations}/${conversationId}/messages`, { content: 'hi' })
  expect(sent.status, sent.text).toBe(201)
  expect(provider.received.length).toBeGreaterThan(0)
  for (const { line, headers, body } of provider.received) {
    expect([line, body.model]).toEqual(['POST /v1/chat/completions', 'local'])
    expect(headers).not.toHaveProperty('authorization')
  }
})

test('an invalid address ends a turn with an error that names the service', async () => {
  const { send } = await open({ environment: { OLLAMA_BASE_URL: 'nowhere' } })
  const { workspaceId } = (await send('POST /api/v1/workspaces', { name: 'here' })).body
  const at = `/api/v1/workspaces/${workspaceId}`
  const fields = { name: 'llama', provider: 'ollama', modelName: 'm' }
  const { llmServiceId } = (await send(`POST ${at}/llm-services`, fields)).body
  const message =
    'LLM service "llama" (ollama) cannot be called: OLLAMA_BASE_URL must be an http(s) URL without a user name and password'
  const shown = await send(`GET ${at}/llm-services/${llmServiceId}?includeProblem=true`)
  expect(shown.body.problem).toEqual({ message, hint: expect.stringMatching(/\S/) })
  const { agentId } = (await send(`POST ${at}/agents`, { name: 'a', llmServiceId })).body
  const conversations = `${at}/agents/${agentId}/conversations`
  const { conversationId } = (await send(`POST ${conversations}`, {})).body
  const sent = await send(`POST ${conversations}/${conversationId}/messages`, { content: 'hi' })
  expect([sent.status, sent.body.assistant]).toMatchObject([
    201,
    { metadata: { finish_reason: 'error', error_message: expect.stringContaining(message) } },
  ])
})
