import { expect, test } from 'vitest'
import { documents } from '../../../src/contract/documents.ts'
import { kb } from '../../../src/contract/knowledge.ts'
import type { TestRuntime } from '../../harness/runtime.ts'
import { eventData, eventNames, openTestChat } from '../../harness/test-chat.ts'

interface SentMessage {
  readonly role: string
  readonly content: string
  readonly tool_calls?: readonly object[]
}

const search = { name: 'search_kb', arguments: { query: 'refunds' } }

async function createHandbook({ call }: TestRuntime, workspaceId: string) {
  const params = { workspaceId }
  const { knowledgeBaseId } = await call(kb.create, { params, body: { name: 'handbook' } })
  const body = { text: 'Refunds are paid within 14 days.', sourceFilename: 'refunds.md' }
  await call(documents.ingest, { params: { ...params, knowledgeBaseId }, body })
  return { knowledgeBaseIds: [knowledgeBaseId] }
}

test('streams reasoning as its own event, and stores it apart from the answer', async () => {
  const { model, stream, send, path } = await openTestChat()
  const usage = { total_tokens: 9, completion_tokens_details: { reasoning_tokens: 5 } }
  model.script({ reasoning: 'Two and two.', text: 'Four.', usage }, { text: 'Yes.' })
  const events = await stream('what is 2 + 2?')
  expect(eventNames(events)).toEqual(['user-message', 'reasoning', 'reasoning', 'reasoning', 'token', 'done'])
  const reasoning = eventData(events, 'reasoning').map(({ delta }) => delta)
  expect(reasoning.join('')).toBe('Two and two.')
  const [done] = eventData(events, 'done')
  expect(done).toMatchObject({
    content: 'Four.',
    metadata: { reasoning: 'Two and two.', reasoning_tokens: '5' },
  })
  expect((await send(`GET ${path}/messages`)).body.items).toContainEqual(done)
  await stream('sure?')
  expect(JSON.stringify(model.received[1]!.body)).not.toContain('Two and two')
})

test('resets text that is reasoning', async () => {
  const { model, stream } = await openTestChat()
  model.script({ text: 'Two and two.\n</think>\n\nFour.', chunksOf: 4 })
  const events = await stream('what is 2 + 2?')
  expect(eventNames(events)).toEqual(['user-message', 'token', 'token-reset', 'reasoning', 'token', 'done'])
  expect(eventData(events, 'reasoning')).toEqual([{ delta: 'Two and two.\n' }])
  expect(eventData(events, 'done')[0]).toMatchObject({
    content: 'Four.',
    metadata: { reasoning: 'Two and two.' },
  })
})

test('reports an error when reasoning uses up the output tokens', async () => {
  const { model, send, path } = await openTestChat({ service: { maxOutputTokens: 7 } })
  model.script({ reasoning: 'Two and', finishReason: 'length' })
  const { body } = await send(`POST ${path}/messages`, { content: 'what is 2 + 2?' })
  const { metadata } = (body as { assistant: { metadata: Record<string, string> } }).assistant
  expect(metadata).toMatchObject({ finish_reason: 'error' })
  expect(metadata.error_message).toContain('used all of its 7 output tokens for reasoning')
  expect(metadata.error_message).toContain('Increase maxOutputTokens')
})

test('answers from retrieval when the provider refuses tools, and remembers it', async () => {
  const { model, stream, send, path } = await openTestChat({ prepare: createHandbook })
  const refusal = { status: 400, body: { error: { message: 'gemma3 does not support tools' } } }
  model.script(refusal, { text: 'Within 14 days [1].' }, { text: 'As said [1].' })
  const events = await stream('when are refunds paid?')
  expect(eventNames(events)).toEqual(['user-message', 'token', 'done'])
  const [done] = eventData(events, 'done')
  expect(done!.metadata.context_document_ids).toBeTruthy()
  const [, retried] = model.received
  expect(retried!.body.tools).toBeUndefined()
  expect((retried!.body.messages as SentMessage[])[0]!.content).toContain('Refunds are paid within 14 days.')
  const { body } = await send(`POST ${path}/messages`, { content: 'sure?' })
  expect(body).toMatchObject({ assistant: { content: 'As said [1].' } })
  expect(model.received).toHaveLength(3)
})

test('answers a repeated call in one answer with the first result', async () => {
  const { model, stream } = await openTestChat({ prepare: createHandbook })
  const reordered = { name: 'search_kb', arguments: '{ "query":"refunds" }' }
  model.script({ toolCalls: [search, reordered] }, { text: 'Within 14 days [1].' })
  const events = await stream('when are refunds paid?')
  const [first, second] = eventData(events, 'tool-result')
  expect(second!.content).toContain('It was not run again')
  expect(second!.content).toContain(first!.content)
  const { metadata } = eventData(events, 'done')[0]!
  expect(metadata.context_document_ids!.split(',')).toHaveLength(1)
})

test('requests an answer without tools when a model repeats a round', async () => {
  const { model, stream } = await openTestChat({ prepare: createHandbook })
  model.respond(({ body }) => (body.tools ? { toolCalls: [search] } : { text: 'Within 14 days [1].' }))
  const events = await stream('when are refunds paid?')
  expect(model.received).toHaveLength(3)
  expect(eventData(events, 'done')[0]).toMatchObject({
    content: 'Within 14 days [1].',
    metadata: { finish_reason: 'stop' },
  })
})

test('requests an answer without tools in the last model call of a turn', async () => {
  const { model, stream } = await openTestChat({ prepare: createHandbook })
  model.respond(({ body }) =>
    body.tools
      ? { toolCalls: [{ name: 'search_kb', arguments: { query: `refunds ${model.received.length}` } }] }
      : { text: 'Within 14 days [1].' },
  )
  const events = await stream('when are refunds paid?')
  expect(model.received).toHaveLength(6)
  const roles = (model.received[5]!.body.messages as SentMessage[]).map(({ role }) => role)
  expect(roles.filter(role => role === 'tool')).toHaveLength(5)
  expect(eventData(events, 'done')[0]).toMatchObject({ content: 'Within 14 days [1].' })
})

test('stores a filtered answer with its text and finish_reason content_filter', async () => {
  const { model, stream } = await openTestChat()
  model.script({ text: 'The first step is', finishReason: 'content_filter' })
  const [done] = eventData(await stream('how?'), 'done')
  expect(done).toMatchObject({
    content: 'The first step is',
    metadata: { finish_reason: 'content_filter' },
  })
})

test('reports the reason of the provider and a hint to the user and in the log', async () => {
  const { model, stream, loggedProblems } = await openTestChat()
  const message = 'Insufficient credits for key sk-planted-1234567890\u001b[31m.'
  model.script({ status: 402, body: { error: { message } } })
  const [error] = eventData(await stream('hi'), 'error')
  const shown = error!.metadata.error_message!
  expect(shown).toContain('requires payment (status 402): "Insufficient credits for key [redacted]')
  expect(shown).toContain('Add credits')
  expect(shown).not.toMatch(/planted|\p{Cc}/u)
  expect(loggedProblems).toMatchObject([{ facts: { kind: 'payment', providerStatus: 402 } }])
  expect(loggedProblems[0]!.message).not.toContain('planted')
})

test('shows the last failure as the problem of the service until the model answers', async () => {
  const { model, stream, send, agent } = await openTestChat()
  const path = `/api/v1/workspaces/${agent.workspaceId}/llm-services/${agent.llmServiceId}?includeProblem=true`
  const problem = async () => (await send(`GET ${path}`)).body.problem
  model.script({ status: 402, body: { error: { message: 'Insufficient credits.' } } })
  await stream('hi')
  expect(await problem()).toEqual({
    message:
      'the last request failed: LLM service "fake" (ollama) requires payment (status 402): "Insufficient credits."',
    hint: expect.stringContaining('Add credits'),
  })
  await stream('hi')
  expect(await problem()).toBeNull()
})

test('sends the signature of a call back with it', async () => {
  const { model, stream } = await openTestChat()
  const signature = { google: { thought_signature: 'AbCd' } }
  const call = { id: 'c1', type: 'function', function: { name: 'list_kbs', arguments: '{}' } }
  const delta = { tool_calls: [{ ...call, index: 0, extra_content: signature }] }
  const events = [{ choices: [{ delta, finish_reason: 'tool_calls' }] }]
  model.script(
    {
      headers: { 'content-type': 'text/event-stream' },
      body: `${events.map(event => `data: ${JSON.stringify(event)}\n\n`).join('')}data: [DONE]\n\n`,
    },
    { text: 'None.' },
  )
  await stream('which?')
  const sent = model.received[1]!.body.messages as SentMessage[]
  expect(sent.at(-2)!.tool_calls).toEqual([{ ...call, extra_content: signature }])
})

test('sends the settings of the service, and those of the agent before them', async () => {
  const { model, stream, send, agent } = await openTestChat({
    service: { temperature: 0.9, topP: 0.5, stop: ['END'] },
    agent: { temperature: 0.1, reasoningEffort: 'low' },
  })
  await stream('hi')
  const sent = { temperature: 0.1, top_p: 0.5, reasoning_effort: 'low', stop: ['END'] }
  expect(model.received[0]!.body).toMatchObject(sent)
  const path = `/api/v1/workspaces/${agent.workspaceId}/agents/${agent.agentId}`
  const cleared = { temperature: null, reasoningEffort: null }
  expect(await send(`PATCH ${path}`, cleared)).toMatchObject({ status: 200, body: cleared })
  await stream('hi')
  const { temperature, reasoning_effort: effort } = model.received[1]!.body
  expect({ temperature, effort }).toEqual({ temperature: 0.9, effort: undefined })
})

test('names the setting that a provider refuses', async () => {
  const { model, send, path } = await openTestChat({ agent: { temperature: 0.1 } })
  const message = "Unsupported value: 'temperature' does not support 0.1 with this model."
  model.script({ status: 400, body: { error: { message, param: 'temperature' } } })
  const { body } = await send(`POST ${path}/messages`, { content: 'hi' })
  const { metadata } = (body as { assistant: { metadata: Record<string, string> } }).assistant
  expect(metadata.error_message).toContain('does not support the setting temperature')
  expect(metadata.error_message).toContain('Change or clear temperature of the agent or the service.')
  expect(model.received).toHaveLength(1)
})

test('uses the details of a model from Ollama from the second turn on', async () => {
  const { model, stream } = await openTestChat({ prepare: createHandbook })
  model.describe({ capabilities: ['completion'] })
  await stream('when are refunds paid?')
  expect(model.received[0]!.body.tools).toBeDefined()
  await expect
    .poll(async () => {
      await stream('sure?')
      return model.received.at(-1)!.body.tools
    })
    .toBeUndefined()
})

test('a setting of the service overrides the details from Ollama', async () => {
  const { model, stream } = await openTestChat({ service: { supportsTools: true } })
  model.describe({ capabilities: ['completion'] })
  for (const question of ['one', 'two', 'three']) await stream(question)
  expect(model.received.map(({ body }) => body.tools !== undefined)).toEqual([true, true, true])
})
