import OpenAI, { APIError } from 'openai'
import type {
  ChatCompletionChunk,
  ChatCompletionContentPart,
  ChatCompletionCreateParamsNonStreaming,
  ChatCompletionMessageParam,
} from 'openai/resources'
import { expect, onTestFinished, test } from 'vitest'
import { agents } from '../../../src/contract/agents.ts'
import { mcpServers } from '../../../src/contract/mcp-servers.ts'
import type { Scope } from '../../../src/contract/scopes.ts'
import { llmServices } from '../../../src/contract/services.ts'
import { workspaces } from '../../../src/contract/workspaces.ts'
import { startChatServer } from '../../fakes/chat-server.ts'
import { startMcpServer } from '../../fakes/mcp-server.ts'
import { serveOverHttp } from '../../harness/http-runtime.ts'
import { imageOf, imagePart } from '../../harness/images.ts'
import { makeBase, makeWorkspace } from '../../harness/resources.ts'
import { open, waitUntil } from '../../harness/runtime.ts'

/** Opens a runtime on a port that requires keys, with the agent `maven` and a fake model. */
async function openServer({ anonymousPolicy = 'reject', streamsPerCaller = 10 } = {}) {
  const model = await startChatServer()
  onTestFinished(() => model.close())
  const runtime = { allowedEndpoints: ['127.0.0.1'], streamsPerCaller }
  const wb = await serveOverHttp(
    await open({ config: { auth: { mode: 'apiKey', anonymousPolicy }, runtime } }),
  )
  const asOperator = { call: wb.callAsOperator }
  const { workspaceId } = await makeWorkspace(asOperator)
  const params = { workspaceId }
  const base = await makeBase(asOperator, params)
  const service = { name: 'fake', provider: 'ollama', modelName: 'fake', endpointBaseUrl: model.url }
  const { llmServiceId } = await wb.callAsOperator(llmServices.create, { params, body: service })
  const makeAgent = (name: string, more: object = {}) =>
    wb.callAsOperator(agents.create, { params, body: { name, llmServiceId, ...more } })
  const agent = await makeAgent('maven', { systemPrompt: 'You are Maven.' })
  const mint = async (scopes: readonly Scope[], place = workspaceId) => {
    const line = `POST /api/v1/workspaces/${place}/api-keys`
    return String((await wb.sendAsOperator(line, { label: 'client', scopes })).body.plaintext)
  }
  const path = `/api/v1/workspaces/${workspaceId}/openai/v1`
  const clientWith = (apiKey: string, baseURL = `${wb.url}${path}`) =>
    new OpenAI({ apiKey, baseURL, maxRetries: 0 })
  const client = clientWith(await mint(['read:chat']))
  const ask = (content: string, more: Partial<ChatCompletionCreateParamsNonStreaming> = {}) =>
    client.chat.completions.create({ model: 'maven', messages: [{ role: 'user', content }], ...more })
  return { ...wb, model, base, workspaceId, agent, makeAgent, mint, path, clientWith, client, ask }
}

interface Sent {
  readonly role: string
  readonly content: string
}

/** Returns the messages of one request to the model. */
function receivedMessages({ model }: Awaited<ReturnType<typeof openServer>>, request = 0): Sent[] {
  return model.received[request]!.body.messages as Sent[]
}

/** Returns the error of a request as the official client reads it. */
async function errorOf(request: Promise<unknown>): Promise<APIError> {
  const error = await request.then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  if (!(error instanceof APIError)) throw new Error('the request was not refused', { cause: error })
  return error
}

const searching = { toolCalls: [{ name: 'search_kb', arguments: { query: 'refunds' } }] }

test('lists agents as models: by name, and by ID where several have the name', async () => {
  const wb = await openServer()
  const twins = [await wb.makeAgent('twin'), await wb.makeAgent('twin')]
  const { data } = await wb.client.models.list()
  const ids = data.map(({ id }) => id).slice(-3)
  // The order of agents that were created in the same millisecond is not defined.
  expect([ids[0], ...ids.slice(1).sort()]).toEqual(['maven', ...twins.map(({ agentId }) => agentId).sort()])
  expect(data.find(({ id }) => id === 'maven')).toEqual({
    id: 'maven',
    object: 'model',
    created: Math.floor(Date.parse(wb.agent.createdAt) / 1_000),
    owned_by: 'workbase',
    agent_id: wb.agent.agentId,
  })
})

test('answers a whole conversation in the format of the OpenAI API, with references', async () => {
  const wb = await openServer()
  const { document } = await wb.base.ingest('Refunds are paid within 14 days.')
  wb.model.script({ text: 'Let me look.', ...searching }, { text: 'Within 14 days [1].' })
  const answer = await wb.ask('', {
    messages: [
      { role: 'system', content: 'Answer in one sentence.' },
      { role: 'user', content: 'hello' },
      { role: 'assistant', content: 'Hello. How can I help?' },
      { role: 'user', content: [{ type: 'text', text: 'when are refunds paid?' }] },
    ],
  })
  expect(answer).toEqual({
    id: expect.stringMatching(/^chatcmpl-/),
    object: 'chat.completion',
    created: expect.any(Number),
    model: 'maven',
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: 'Within 14 days [1].',
          refusal: null,
          references: [
            expect.objectContaining({
              number: 1,
              documentId: document.documentId,
              knowledgeBaseId: wb.base.params.knowledgeBaseId,
            }),
          ],
        },
        logprobs: null,
        finish_reason: 'stop',
      },
    ],
    usage: { prompt_tokens: 16, completion_tokens: 6, total_tokens: 22 },
  })
  const sent = receivedMessages(wb)
  expect(sent.map(({ role }) => role)).toEqual(['system', 'user', 'assistant', 'user'])
  expect(sent.slice(1).map(({ content }) => content)).toEqual([
    'hello',
    'Hello. How can I help?',
    'when are refunds paid?',
  ])
  const [prompt] = sent
  expect(prompt!.content).toMatch(/^You are Maven\.\n\n.*\nAnswer in one sentence\.\n/)
  expect(prompt!.content).toContain('Cite the passages')
})

test('streams the exact chunks of the OpenAI API, with usage at the end', async () => {
  const wb = await openServer()
  await wb.base.ingest('Refunds are paid within 14 days.')
  wb.model.script({ text: 'Let me look.', ...searching }, { text: 'Within 14 days [1].', chunksOf: 4 })
  const body = {
    model: wb.agent.agentId,
    messages: [{ role: 'user' as const, content: 'when are refunds paid?' }],
    stream: true as const,
    stream_options: { include_usage: true },
  }
  const chunks: ChatCompletionChunk[] = []
  for await (const chunk of await wb.client.chat.completions.create(body)) chunks.push(chunk)
  const common = {
    id: chunks[0]!.id,
    object: 'chat.completion.chunk',
    created: chunks[0]!.created,
    model: wb.agent.agentId,
  }
  const chunk = (delta: object, finish_reason: string | null = null) => ({
    ...common,
    choices: [{ index: 0, delta, logprobs: null, finish_reason }],
    usage: null,
  })
  expect(chunks[0]).toEqual(chunk({ role: 'assistant', content: '', refusal: null }))
  expect(chunks.at(-2)).toEqual(chunk({ references: [expect.objectContaining({ number: 1 })] }, 'stop'))
  expect(chunks.at(-1)).toEqual({
    ...common,
    choices: [],
    usage: { prompt_tokens: 16, completion_tokens: 6, total_tokens: 22 },
  })
  const pieces = chunks.slice(1, -2)
  for (const piece of pieces) expect(piece).toEqual(chunk({ content: expect.stringMatching(/\w/) }))
  expect(pieces.map(({ choices }) => choices[0]!.delta.content).join('')).toBe(
    'Let me look.\n\nWithin 14 days [1].',
  )

  wb.model.script({ text: 'Yes.' })
  const authorization = `Bearer ${await wb.mint(['read'])}`
  const raw = await wb.send(
    `POST ${wb.path}/chat/completions`,
    { ...body, stream_options: undefined },
    { authorization },
  )
  expect(raw.headers.get('content-type')).toBe('text/event-stream')
  expect(raw.text).toMatch(/^(?:data: \{.*\}\n\n)+data: \[DONE\]\n\n$/)
  expect(raw.text).not.toContain('"usage"')
})

test('stores nothing', async () => {
  const wb = await openServer()
  await wb.ask('hello')
  for await (const _ of await wb.client.chat.completions.create({
    model: 'maven',
    messages: [{ role: 'user', content: 'hello' }],
    stream: true,
  }));
  const { body } = await wb.sendAsOperator(`GET /api/v1/workspaces/${wb.workspaceId}/conversations`)
  expect(body.items).toEqual([])
})

test('limits the answer to max_tokens, and names the fields that it ignores', async () => {
  const wb = await openServer()
  const request = {
    model: 'maven',
    messages: [{ role: 'user' as const, content: 'hello' }],
    max_completion_tokens: 2,
    temperature: 0.2,
    user: 'somebody',
  }
  const { data, response } = await wb.client.chat.completions.create(request).withResponse()
  expect(data.choices[0]).toMatchObject({ finish_reason: 'length', message: { content: 'Hello' } })
  expect(response.headers.get('x-workbase-ignored')).toBe('temperature, user')
  const streamed = await wb.client.chat.completions.create({ ...request, stream: true }).withResponse()
  expect(streamed.response.headers.get('x-workbase-ignored')).toBe('temperature, user')
  streamed.data.controller.abort()
  await wb.ask('hello', { max_tokens: 1_000_000 })
  expect(wb.model.received.at(-1)!.body.max_tokens).toBeLessThan(1_000_000)
})

test('refuses invalid requests in the error format of the OpenAI API', async () => {
  const wb = await openServer()
  await wb.makeAgent('twin')
  await wb.makeAgent('twin')
  const audio = { type: 'input_audio' as const, input_audio: { data: 'AA==', format: 'wav' as const } }
  const long = 'x'.repeat(131_073)
  const user = { role: 'user' as const, content: 'hello' }
  const invalid = { status: 400, type: 'invalid_request_error', code: 'validation_error' }
  const cases: [more: Partial<ChatCompletionCreateParamsNonStreaming>, expected: object][] = [
    [
      { model: 'nobody' },
      { status: 404, type: 'invalid_request_error', code: 'agent_not_found', param: 'model' },
    ],
    [{ model: 'twin' }, { ...invalid, param: 'model', message: expect.stringContaining('several agents') }],
    [
      { messages: [{ role: 'user', content: [audio] }] },
      { ...invalid, param: 'messages.0.content.0.type', message: expect.stringContaining("'input_audio'") },
    ],
    [{ messages: [{ role: 'assistant', content: 'hello' }] }, { ...invalid, param: 'messages' }],
    [{ messages: [{ role: 'system', content: 'be brief' }] }, { ...invalid, param: 'messages' }],
    [{ messages: [] }, { ...invalid, param: 'messages' }],
    [
      { messages: [{ role: 'tool', content: '1', tool_call_id: 'a' }] },
      { ...invalid, param: 'messages.0.role' },
    ],
    [{ messages: [{ role: 'user', content: long }] }, { ...invalid, param: 'messages.0.content' }],
    [{ messages: Array.from({ length: 1_001 }, () => user) }, { ...invalid, param: 'messages' }],
    [{ max_tokens: 0 }, { ...invalid, param: 'max_tokens' }],
    [
      { messages: Array.from({ length: 40 }, () => ({ ...user, content: 'x'.repeat(130_000) })) },
      { status: 413, type: 'invalid_request_error', code: 'payload_too_large' },
    ],
  ]
  for (const [more, expected] of cases) expect(await errorOf(wb.ask('hello', more))).toMatchObject(expected)
  expect(wb.model.received).toEqual([])
})

test('accepts every key of the workspace, and no other key', async () => {
  const wb = await openServer()
  const other = await makeWorkspace({ call: wb.callAsOperator })
  const request = { model: 'maven', messages: [{ role: 'user' as const, content: 'hello' }] }
  for (const scopes of [['read'], ['read:chat'], ['tools:invoke'], ['write', 'manage']] as Scope[][]) {
    const { choices } = await wb.clientWith(await wb.mint(scopes)).chat.completions.create(request)
    expect(choices[0]!.message.content).toBe('Hello there.')
  }
  const foreign = await wb.mint(['read', 'write', 'manage'], other.workspaceId)
  const unknown = foreign.replace(/.{8}$/, '00000000')
  for (const [key, expected] of [
    [foreign, { status: 403, code: 'forbidden', type: 'permission_error' }],
    [unknown, { status: 401, code: 'unauthorized', type: 'authentication_error' }],
  ] as const) {
    const client = wb.clientWith(key)
    expect(await errorOf(client.chat.completions.create(request))).toMatchObject(expected)
    expect(await errorOf(client.chat.completions.create({ ...request, stream: true }))).toMatchObject(
      expected,
    )
    expect(await errorOf(client.models.list().then())).toMatchObject(expected)
  }
  const missing = await wb.sendAsOperator(
    'GET /api/v1/workspaces/99999999-9999-4999-8999-999999999999/openai/v1/models',
  )
  expect(missing).toMatchObject({ status: 404, body: { error: { code: 'workspace_not_found' } } })
})

test('requires a principal if row-level access is on, as conversations do', async () => {
  const wb = await openServer({ anonymousPolicy: 'allow' })
  const body = { model: 'maven', messages: [{ role: 'user', content: 'hello' }] }
  const ask = () => wb.send(`POST ${wb.path}/chat/completions`, body)
  expect(await ask()).toMatchObject({ status: 200 })
  const params = { workspaceId: wb.workspaceId }
  await wb.callAsOperator(workspaces.update, { params, body: { rlacEnabled: true } })
  expect(await ask()).toMatchObject({ status: 401, body: { error: { code: 'policy_principal_required' } } })
})

test('denies the tools that a plain send denies: without the scope, after reading, and with an ask rule', async () => {
  const wb = await openServer()
  const call = () => ({ content: [{ type: 'text' as const, text: 'planted' }] })
  const server = await startMcpServer({ tools: [{ name: 'add', call }] })
  const params = { workspaceId: wb.workspaceId }
  const { mcpServerId } = await wb.callAsOperator(mcpServers.create, {
    params,
    body: { label: 'tools', url: server.url },
  })
  const name = `mcp:${mcpServerId}:add`
  const toolIds = [name]
  await wb.makeAgent('open', { toolIds })
  await wb.makeAgent('asking', { toolIds, toolRules: { 'mcp:*': { permission: 'ask' } } })
  const careful = { 'mcp:*': { permission: 'allow', afterReading: 'deny' } }
  await wb.makeAgent('careful', { toolIds, toolRules: careful })
  const answerTo = async (client: OpenAI, model: string, earlier: ChatCompletionMessageParam[] = []) => {
    wb.model.script({ toolCalls: [{ name }] }, { text: 'Done.' })
    await client.chat.completions.create({ model, messages: [...earlier, { role: 'user', content: 'add' }] })
    return receivedMessages(wb, wb.model.received.length - 1).at(-1)!.content
  }
  const invoker = wb.clientWith(await wb.mint(['tools:invoke']))
  expect(await answerTo(invoker, 'open')).toContain('planted')
  expect(await answerTo(invoker, 'asking')).toContain('approval')
  expect(await answerTo(wb.client, 'open')).toContain('tools:invoke')
  const earlier: ChatCompletionMessageParam[] = [
    { role: 'user', content: 'read the page' },
    { role: 'assistant', content: 'It says to add.' },
  ]
  expect(await answerTo(invoker, 'careful')).toContain('planted')
  expect(await answerTo(invoker, 'careful', earlier)).toContain('deny')
})

test('reports a model failure as a status before the answer, and as an error event during it', async () => {
  const wb = await openServer()
  wb.model.respond(() => ({ status: 402, body: { error: { message: 'no credit' } } }))
  const failed = { status: 502, code: 'chat_answer_failed', type: 'server_error' }
  const whole = await errorOf(wb.ask('hello'))
  expect(whole).toMatchObject(failed)
  expect(whole.headers!.get('x-should-retry')).toBe('false')
  const messages = [{ role: 'user' as const, content: 'hello' }]
  const request = { model: 'maven', messages, stream: true as const }
  expect(await errorOf(wb.client.chat.completions.create(request))).toMatchObject(failed)

  wb.model.respond(() => ({ text: 'Hello there, dear reader.', cutAfter: 3 }))
  const pieces: string[] = []
  const stream = await wb.client.chat.completions.create(request)
  const read = async () => {
    for await (const { choices } of stream) pieces.push(choices[0]?.delta.content ?? '')
  }
  expect(await errorOf(read())).toMatchObject({ code: 'chat_answer_failed' })
  expect(pieces.join('')).toMatch(/^Hello/)
})

test('ends all model calls when the client disconnects, before and during the answer', async () => {
  const wb = await openServer()
  const request = { model: 'maven', messages: [{ role: 'user' as const, content: 'hello' }] }
  wb.model.script({ text: 'one two three four', silentAfter: 3 })
  const stream = await wb.client.chat.completions.create({ ...request, stream: true })
  for await (const { choices } of stream) if (choices[0]?.delta.content) break
  await waitUntil(() => wb.model.abandoned === 1)

  for (const [at, streamed] of [true, false].entries()) {
    wb.model.script({ hang: true })
    const leave = new AbortController()
    const pending = wb.client.chat.completions.create(
      { ...request, stream: streamed },
      { signal: leave.signal },
    )
    await waitUntil(() => wb.model.received.length === at + 2)
    leave.abort()
    await expect(pending).rejects.toThrow('aborted')
    await waitUntil(() => wb.model.abandoned === at + 2)
  }
})

test('a stream above the limit ends its model call', async () => {
  const wb = await openServer({ streamsPerCaller: 1 })
  const request = {
    model: 'maven',
    messages: [{ role: 'user' as const, content: 'hello' }],
    stream: true as const,
  }
  wb.model.respond(() => ({ text: 'one two three four', silentAfter: 3 }))
  const first = await wb.client.chat.completions.create(request)
  const second = await errorOf(wb.client.chat.completions.create(request))
  expect(second).toMatchObject({ status: 429, code: 'rate_limited', type: 'rate_limit_error' })
  await waitUntil(() => wb.model.abandoned === 1)
  first.controller.abort()
  await waitUntil(() => wb.model.abandoned === 2)
})

test('rejects a stream whose model has not answered yet when the runtime stops', async () => {
  const wb = await openServer()
  wb.model.script({ hang: true })
  const messages = [{ role: 'user' as const, content: 'hello' }]
  const pending = errorOf(wb.client.chat.completions.create({ model: 'maven', messages, stream: true }))
  await waitUntil(() => wb.model.received.length === 1)
  await wb.close()
  expect(await pending).toMatchObject({ status: 503, code: 'draining', type: 'server_error' })
})

const png = imagePart(imageOf())

test('sends images in data URLs to the model, including those of earlier messages', async () => {
  const { client, model } = await openServer()
  const gif = imagePart(imageOf('image/gif'))
  await client.chat.completions.create({
    model: 'maven',
    messages: [
      { role: 'user', content: [png as ChatCompletionContentPart] },
      { role: 'assistant', content: 'A cat.' },
      { role: 'user', content: [{ type: 'text', text: 'and this?' }, gif as ChatCompletionContentPart] },
    ],
  })
  const messages = model.received[0]!.body.messages as { role: string; content: unknown }[]
  expect(messages.filter(({ role }) => role === 'user').map(({ content }) => content)).toEqual([
    [png],
    [{ type: 'text', text: 'and this?' }, gif],
  ])
})

test.each<[what: string, message: object, param: string, reason: string]>([
  [
    'an image at an address',
    { role: 'user', content: [{ type: 'image_url', image_url: { url: 'https://example.com/a.png' } }] },
    'messages.0.content.0.image_url.url',
    'images are not fetched',
  ],
  [
    'an image of a system message',
    { role: 'system', content: [png] },
    'messages.0.content',
    'only messages with the role user can have images',
  ],
  [
    'an image without text in the question',
    { role: 'user', content: [png] },
    'messages',
    'must have the role user and contain text',
  ],
])('rejects %s', async (_, message, param, reason) => {
  const { client, model } = await openServer()
  const messages = [message as ChatCompletionMessageParam]
  const error = await errorOf(client.chat.completions.create({ model: 'maven', messages }))
  expect(error).toMatchObject({ status: 400, code: 'validation_error', param })
  expect(error.message).toContain(reason)
  expect(model.received).toEqual([])
})
