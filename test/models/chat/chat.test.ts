import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { WbError } from '../../../src/contract/errors.ts'
import { ProviderFailure } from '../../../src/models/provider/provider-failure.ts'
import { type ChatServer, refusals } from '../../fakes/chat-server.ts'
import { type ChatSetup, type ChatSetupOptions, setUpChat } from '../../harness/chat-setup.ts'

let place: ChatSetup
let provider: ChatServer
beforeEach(async () => {
  place = await setUpChat()
  provider = place.provider
})
afterEach(() => place.close())
const open = (setting?: ChatSetupOptions) => place.open(setting)

const messages = [
  { role: 'system', content: 'Be brief.' },
  { role: 'user', content: 'Hi' },
] as const
const settings = (signal = new AbortController().signal) => ({ maxTokens: 64, signal })

async function failureOf(setting: ChatSetupOptions = {}): Promise<Error> {
  return open(setting)
    .complete(messages, settings())
    .then(
      () => Promise.reject(new Error('it answered')),
      (error: Error) => error,
    )
}

describe('chat protocol', () => {
  test('sends messages with model, token limit and key, and returns text', async () => {
    expect(await open().complete(messages, settings())).toEqual({
      text: 'Hello there.',
      reasoning: '',
      reasoningTokens: null,
      toolCalls: [],
      finishReason: 'stop',
      tokenCount: 11,
      promptTokens: 8,
      completionTokens: 3,
      costUsd: null,
    })
    const [request] = provider.received
    expect(request?.line).toBe('POST /v1/chat/completions')
    expect(request?.headers.authorization).toBe('Bearer sk-secret')
    expect(request?.body).toEqual({ model: 'some-model', max_tokens: 64, messages })
  })

  test('sends a conversation with tool calls in the format of the protocol', async () => {
    const call = { id: 'c1', name: 'mcp:files:read', arguments: '{"path":"/a"}' }
    const broken = { id: 'c2', name: 'search', arguments: '{"q' }
    await open().complete(
      [
        { role: 'user', content: 'Hi' },
        { role: 'assistant', content: '', toolCalls: [call, broken] },
        { role: 'tool', toolCallId: 'c1', content: 'found' },
        { role: 'assistant', content: 'So it is.' },
      ],
      { ...settings(), tools: [{ name: 'search', description: 'Search.', parameters: { type: 'object' } }] },
    )
    const spelled = expect.stringMatching(/^mcp_files_read_[0-9a-f]{8}$/)
    expect(provider.received[0]?.body).toEqual({
      model: 'some-model',
      max_tokens: 64,
      tool_choice: 'auto',
      tools: [
        {
          type: 'function',
          function: { name: 'search', description: 'Search.', parameters: { type: 'object' } },
        },
      ],
      messages: [
        { role: 'user', content: 'Hi' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            { id: 'c1', type: 'function', function: { name: spelled, arguments: '{"path":"/a"}' } },
            { id: 'c2', type: 'function', function: { name: 'search', arguments: '{}' } },
          ],
        },
        { role: 'tool', tool_call_id: 'c1', content: 'found' },
        { role: 'assistant', content: 'So it is.' },
      ],
    })
  })

  test.each([
    ['joined with endpointPath', { endpointPath: '/deep' }, '/v1/deep/chat/completions'],
    ['that names the call already', { endpointPath: '/chat/completions' }, '/v1/chat/completions'],
  ])('uses an address %s', async (_what, service, path) => {
    await open({ service: { ...service } })
      .complete(messages, settings())
      .catch(() => {})
    expect(provider.received[0]?.line).toBe(`POST ${path}`)
  })

  test('sends OpenRouter the name of the application, and disables data collection', async () => {
    await open({ service: { provider: 'openrouter' } }).complete(messages, settings())
    await open({ service: { provider: 'openrouter' }, chat: { allowDataCollection: true } }).complete(
      messages,
      settings(),
    )
    const [first, second] = provider.received
    expect(first?.body.provider).toEqual({ data_collection: 'deny' })
    expect(second?.body).not.toHaveProperty('provider')
    expect(first?.headers).toMatchObject({ 'x-title': 'Workbase', 'http-referer': 'http://localhost' })
  })

  test('Ollama requires no key, and its address is in OLLAMA_BASE_URL', async () => {
    const service = { provider: 'ollama', credentialRef: null, endpointBaseUrl: null }
    const variables = { OLLAMA_BASE_URL: `http://${provider.host}` }
    expect((await open({ service, variables }).complete(messages, settings())).text).toBe('Hello there.')
    expect(provider.received[0]?.line).toBe('POST /v1/chat/completions')
    expect(provider.received[0]?.headers).not.toHaveProperty('authorization')
  })

  test('token counts are unknown if the provider does not return them', async () => {
    const choices = [{ message: { role: 'assistant', content: 'Hello.' }, finish_reason: 'stop' }]
    for (const usage of [undefined, null, {}, { total_tokens: '11' }]) {
      provider.script({ body: { choices, usage } })
      expect((await open().complete(messages, settings())).tokenCount).toBeNull()
    }
  })

  test('reports an answer that was truncated at its token limit', async () => {
    const { finishReason } = await open().complete(messages, { ...settings(), maxTokens: 1 })
    expect(finishReason).toBe('length')
  })
})

test('S7.3-08: three kinds of providers are supported, and no others', () => {
  for (const name of ['openrouter', 'openai', 'ollama'])
    expect(() => open({ service: { provider: name } })).not.toThrow()
  for (const name of ['huggingface', 'cohere', 'mock', 'OpenAI', 'constructor', ''])
    expect(() => open({ service: { provider: name } })).toThrow(
      expect.objectContaining({ code: 'llm_provider_unsupported' }),
    )
})

describe('errors of the provider about the model', () => {
  test.each([
    ['unknownModel', 'llm_model_unavailable'],
    ['invalidId', 'llm_model_unavailable'],
    ['noEndpoint', 'llm_model_unavailable'],
    ['withStatus200', 'llm_model_unavailable'],
    ['notChat', 'llm_model_not_chat'],
    ['otherEndpoint', 'llm_model_not_chat'],
  ] as const)('%s is %s, without the message of the provider', async (refusal, code) => {
    provider.script(refusals[refusal])
    const failure = await failureOf()
    expect(failure).toMatchObject({ code, status: 422 })
    expect(failure.message).toContain('model "some-model"')
    expect(failure.message).not.toMatch(/sk-|v1\/|endpoint/)
  })

  test.each([400, 404, 422])('are recognized with status %i', async status => {
    provider.script({ ...refusals.unknownModel, status })
    expect(await failureOf()).toMatchObject({ code: 'llm_model_unavailable' })
  })

  test.each([
    ['a failure of its own', { status: 500, body: refusals.unknownModel.body }, /status 500/],
    ['a key that it refuses', { status: 401, body: refusals.unknownModel.body }, /status 401/],
    ['a path that is not there', { status: 404, body: 'Not Found' }, /status 404/],
    ['a request that it does not like', { status: 400, body: { error: { message: 'no' } } }, /status 400/],
    ['no JSON', { status: 200, body: 'hello' }, /cannot be read|without text/],
    ['no choices', { status: 200, body: {} }, /without text/],
    ['no text', { status: 200, body: { choices: [{ message: {}, finish_reason: 'stop' }] } }, /without text/],
    ['a redirect', { status: 302, headers: { location: 'http://127.0.0.1/' }, body: {} }, /redirect/],
  ])('are not assumed for %s', async (_what, step, words) => {
    provider.script(step)
    const failure = await failureOf()
    expect(failure).toBeInstanceOf(ProviderFailure)
    expect(failure.message).toMatch(words)
    expect(failure.message).not.toContain('sk-')
    expect(provider.received).toHaveLength(1)
  })
})

describe('credential of a chat service', () => {
  test.each([
    ['that is not released', { released: false }, /not released/],
    ['that leads to nothing', { service: { credentialRef: 'env:NOPE' } }, /cannot use its credential/],
    [
      'that is not named',
      { service: { credentialRef: null, endpointBaseUrl: null } },
      /has no credential, and api\.openai\.com requires one/,
    ],
  ])('a credential %s is not sent', async (_what, setting, words) => {
    const failure = await failureOf(setting)
    expect(failure).toMatchObject({ code: 'llm_credential_missing', status: 503 })
    expect(failure.message).toMatch(words)
    expect(provider.received).toEqual([])
  })

  test('the key of the configuration is used for a service without one at the configured endpoint', async () => {
    const own = { provider: 'openai', baseUrl: provider.url } as const
    await open({ service: { credentialRef: null }, chat: own }).complete(messages, settings())
    expect(provider.received[0]?.headers.authorization).toBe('Bearer sk-own')
  })

  test('the key of the configuration is omitted at your own server if it is not set', async () => {
    const own = { provider: 'openai', baseUrl: provider.url, tokenRef: 'env:NOPE' } as const
    await open({ service: { credentialRef: null }, chat: own }).complete(messages, settings())
    expect(provider.received[0]?.headers).not.toHaveProperty('authorization')
  })

  test('the key of the service has priority at the configured endpoint, and Ollama gets no key', async () => {
    await open({ chat: { provider: 'openai', baseUrl: provider.url } }).complete(messages, settings())
    expect(provider.received[0]?.headers.authorization).toBe('Bearer sk-secret')
    const chat = { provider: 'ollama', baseUrl: provider.url } as const
    await open({ service: { provider: 'ollama', credentialRef: null }, chat }).complete(messages, settings())
    expect(provider.received[1]?.headers).not.toHaveProperty('authorization')
  })

  test('the key of the configuration is not sent to an address from a service', async () => {
    const service = { credentialRef: null, provider: 'openrouter' }
    await open({ service }).complete(messages, settings())
    const elsewhere = { provider: 'openrouter', baseUrl: 'https://own.example.com/v1' } as const
    await open({ service, chat: elsewhere }).complete(messages, settings())
    expect(provider.received).toHaveLength(2)
    for (const { headers } of provider.received) expect(headers).not.toHaveProperty('authorization')
  })
})

test('a request ends when its caller disconnects', async () => {
  provider.script({ hang: true })
  const leaving = new AbortController()
  const answer = open().complete(messages, settings(leaving.signal))
  await expect.poll(() => provider.received.length).toBe(1)
  leaving.abort(new WbError('draining', 'gone'))
  await expect(answer).rejects.toMatchObject({ code: 'draining' })
})
