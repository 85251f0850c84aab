import { afterEach, beforeEach, expect, test } from 'vitest'
import type { OutboundRequest } from '../../src/models/outbound.ts'
import { type ChatServer, startChatServer } from '../fakes/chat-server.ts'
import { open, type TestRuntimeOptions } from '../harness/runtime.ts'
import { anyText, arrayOf, exactly, oneOf } from './exactly.ts'
import { failure } from './shapes.ts'

let provider: ChatServer
beforeEach(async () => {
  provider = await startChatServer()
})
afterEach(() => provider.close())

const list = '/api/v1/llm-models'
const model = {
  id: anyText,
  name: anyText,
  supportsTools: oneOf(true, false, null),
  recommended: oneOf(true, false),
}

/** Opens a runtime whose outbound requests all get one response. */
async function answered(status: number, text: string, options: TestRuntimeOptions = {}) {
  const asked: { url: string; request: OutboundRequest }[] = []
  const wb = await open({
    ...options,
    outbound: async (url, request) => {
      asked.push({ url: url.href, request })
      return { status, headers: new Headers(), body: new Blob([text]).stream() }
    },
  })
  return { ...wb, asked }
}

const catalogue = {
  data: [
    { id: 'zeta/talks', name: 'Zeta', supported_parameters: ['tools', 'temperature'] },
    { id: 'openai/gpt-4o-mini', name: 'GPT-4o mini', supported_parameters: ['tools'] },
    { id: 'alpha/silent', name: 'Alpha', supported_parameters: ['temperature'] },
    { id: 'alpha/calls', supported_parameters: ['tools'] },
    { id: 7 },
    null,
  ],
}

test('OpenRouter lists models with tool calls, recommended ones first, then by ID', async () => {
  const wb = await answered(200, JSON.stringify(catalogue))
  for (const query of ['', '?provider=openrouter'])
    exactly((await wb.send(`GET ${list}${query}`)).body, {
      provider: 'openrouter',
      source: 'live',
      models: [
        { id: 'openai/gpt-4o-mini', name: 'GPT-4o mini', supportsTools: true, recommended: true },
        { id: 'alpha/calls', name: 'alpha/calls', supportsTools: true, recommended: false },
        { id: 'zeta/talks', name: 'Zeta', supportsTools: true, recommended: false },
      ],
    })
  expect(wb.asked[0]).toMatchObject({
    url: 'https://openrouter.ai/api/v1/models',
    request: { method: 'GET' },
  })
  expect(wb.asked[0]?.request.headers).not.toHaveProperty('authorization')
})

test('OpenAI has a built-in list, without a request', async () => {
  const wb = await answered(200, JSON.stringify(catalogue))
  const { body } = await wb.send(`GET ${list}?provider=openai`)
  exactly(body, { provider: 'openai', source: 'fallback', models: arrayOf(model) })
  expect(body.models).not.toEqual([])
  expect(wb.asked).toEqual([])
})

test('Ollama lists its installed models from baseUrl', async () => {
  const wb = await open()
  for (const baseUrl of [provider.url, `http://${provider.host}`, `${provider.url}/models`])
    exactly((await wb.send(`GET ${list}?provider=ollama&baseUrl=${encodeURIComponent(baseUrl)}`)).body, {
      provider: 'ollama',
      source: 'live',
      models: [
        { id: 'a:3b', name: 'a:3b', supportsTools: null, recommended: false },
        { id: 'b:7b', name: 'b:7b', supportsTools: null, recommended: false },
      ],
    })
  expect(new Set(provider.received.map(({ line }) => line))).toEqual(new Set(['GET /v1/models']))
})

test.each([
  ['that fails', 500, '{}'],
  ['that fails with a list', 500, JSON.stringify(catalogue)],
  ['that says more than is read', 200, JSON.stringify({ ...catalogue, more: 'x'.repeat(16_000_000) })],
  ['that lists nothing', 200, '{"data": []}'],
  ['that says something else', 200, '<html>'],
  ['that lists no models', 200, '[null]'],
])('a provider %s returns the built-in list instead of an error', async (_what, status, text) => {
  const wb = await answered(status, text)
  for (const name of ['openrouter', 'ollama']) {
    const reply = await wb.send(`GET ${list}?provider=${name}`)
    expect(reply.status).toBe(200)
    exactly(reply.body, { provider: name, source: 'fallback', models: arrayOf(model) })
    expect(reply.body.models).not.toEqual([])
  }
})

test('a request to a silent provider times out after a few seconds', async () => {
  const wb = await open()
  provider.script({ hang: true })
  const reply = await wb.send(`GET ${list}?provider=ollama&baseUrl=${encodeURIComponent(provider.url)}`)
  expect(reply.body).toMatchObject({ provider: 'ollama', source: 'fallback' })
})

test('returns at most two thousand models of a provider', async () => {
  const data = Array.from({ length: 2_100 }, (_, n) => ({
    id: `maker/model-${String(n).padStart(4, '0')}`,
    supported_parameters: ['tools'],
  }))
  const wb = await answered(200, JSON.stringify({ data: data.toReversed() }))
  const models = (await wb.send(`GET ${list}?provider=openrouter`)).body.models as { id: string }[]
  expect(models.map(({ id }) => id)).toEqual(data.slice(0, 2_000).map(({ id }) => id))
})

test('uses the provider of the configuration by default', async () => {
  const wb = await answered(500, '', { config: { chat: { provider: 'ollama' } } })
  expect((await wb.send(`GET ${list}`)).body.provider).toBe('ollama')
})

test.each([
  ['provider=huggingface', 'provider'],
  ['provider=ollama&baseUrl=ftp%3A%2F%2Fhost', 'baseUrl'],
  ['provider=ollama&baseUrl=http%3A%2F%2F169.254.169.254', 'baseUrl'],
  ['provider=ollama&baseUrl=http%3A%2F%2Fu%3Ap%40host', 'baseUrl'],
])('rejects %s by name', async (query, field) => {
  const wb = await answered(200, '{}')
  const reply = await wb.send(`GET ${list}?${query}`)
  expect(reply.status).toBe(400)
  exactly(reply.body, failure('validation_error'))
  expect(reply.text).toContain(`"message":"${field}: `)
  expect(wb.asked).toEqual([])
})

test('rejects private addresses when authentication is enabled [security rule 14]', async () => {
  const auth = { mode: 'apiKey' }
  const wb = await open({ config: { auth } })
  const query = `provider=ollama&baseUrl=${encodeURIComponent(provider.url)}`
  const refused = await wb.send(`GET ${list}?${query}`)
  expect(refused.status).toBe(400)
  expect(refused.text).toContain('baseUrl: ')
  const allowed = await open({ config: { auth, runtime: { allowedEndpoints: [provider.host] } } })
  expect((await allowed.send(`GET ${list}?${query}`)).body.source).toBe('live')
  expect(provider.received).toHaveLength(1)
})

test('rejects a private address in a service, naming the field [security rule 14]', async () => {
  const wb = await open({ config: { runtime: { blockPrivateNetworkEndpoints: true } } })
  const { workspaceId } = (await wb.send('POST /api/v1/workspaces', { name: 'here' })).body
  const bodies = {
    'chunking-services': { name: 'one', engine: 'langchain_ts' },
    'embedding-services': { name: 'one', provider: 'ollama', modelName: 'm', embeddingDimension: 3 },
    'reranking-services': { name: 'one', provider: 'ollama', modelName: 'm' },
    'llm-services': { name: 'one', provider: 'ollama', modelName: 'm' },
  }
  for (const [segment, body] of Object.entries(bodies)) {
    const services = `/api/v1/workspaces/${workspaceId}/${segment}`
    const made = (await wb.send(`POST ${services}`, body)).body
    const id = Object.entries(made).find(([name]) => name.endsWith('ServiceId'))![1]
    for (const host of [
      'localhost',
      '127.0.0.1',
      '[::1]',
      '10.1.2.3',
      '192.168.0.1',
      '172.20.0.1',
      '[fd12::1]',
    ])
      for (const [line, json] of [
        [`POST ${services}`, { ...body, endpointBaseUrl: `http://${host}:11434/v1` }],
        [`PATCH ${services}/${id}`, { endpointBaseUrl: `http://${host}:11434/v1` }],
      ] as const) {
        const refused = await wb.send(line, json)
        expect(refused.status, `${line} ${host}`).toBe(400)
        expect(refused.text).toContain('"message":"endpointBaseUrl: ')
      }
    expect((await wb.send(`GET ${services}/${id}`)).body).toEqual(made)
  }
})
