import { expect, onTestFinished, test, vi } from 'vitest'
import { startChatServer } from '../fakes/chat-server.ts'
import { type FakeProvider, startFakeProvider } from './fake-provider.ts'
import { makeKnowledgeBase, makeWorkspace } from './fixtures.ts'
import { type Serving, serve, Wire } from './harness.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

/** Starts a runtime that stops when the test ends. */
async function place(): Promise<{ serving: Serving; wire: Wire }> {
  const serving = await serve()
  const wire = new Wire()
  wire.open(serving.url)
  onTestFinished(async () => {
    await wire.close()
    await serving.stop()
  })
  return { serving, wire }
}

test('S7.3-draining S7.3-10: after SIGTERM, new requests get 503, pending ones finish, and the exit status is 0', async () => {
  const { serving, wire } = await place()
  const provider = await startFakeProvider(4)
  onTestFinished(() => provider.close())
  const kb = await makeSlowPlace(wire, provider)
  let release = () => {}
  provider.hold = new Promise(resolve => {
    release = resolve
  })
  const inFlight = wire.send(`POST ${kb}/ingest`, { json: { text: 'Slow.' } })
  await expect.poll(() => provider.received.length === 1, { timeout: 10_000 }).toBe(true)
  const ended = serving.stop()
  await expect
    .poll(async () => (await wire.send('GET /readyz')).status === 503, { timeout: 10_000 })
    .toBe(true)
  await wire.refused('GET /readyz', {}, 503, 'draining')
  await wire.refused('GET /api/v1/workspaces', {}, 503, 'draining')
  await wire.refused('POST /api/v1/workspaces', { json: { name: 'late' } }, 503, 'draining')
  expect((await wire.send('GET /healthz')).status).toBe(200)
  release()
  expect((await inFlight).status).toBe(201)
  expect(await ended).toBe(0)
})

test('S7.3-draining: after SIGTERM, model requests are aborted, and the partial answer is stored and marked', async () => {
  const { serving, wire } = await place()
  const model = await startChatServer()
  onTestFinished(() => model.close())
  const conversation = await makeConversation(wire, model.url)
  model.script({ hang: true }, { text: 'one two three four', silentAfter: 3 })
  const whole = wire.send(`POST ${conversation}/messages`, { json: { content: 'count' } })
  await expect.poll(() => model.received.length === 1, { timeout: 10_000 }).toBe(true)
  const streamed = wire.send(`POST ${conversation}/messages/stream`, { json: { content: 'again' } })
  await expect.poll(() => model.received.length === 2, { timeout: 10_000 }).toBe(true)
  const ended = serving.stop()
  const interrupted = { finish_reason: 'stop', interrupted: 'true' }
  expect(await whole).toMatchObject({
    status: 201,
    body: { user: { content: 'count' }, assistant: { content: '', metadata: interrupted } },
  })
  expect((await streamed).text).not.toContain('event: done')
  expect(await ended).toBe(0)
  expect(model.abandoned).toBe(2)
})

async function makeConversation(wire: Wire, endpointBaseUrl: string): Promise<string> {
  const workspace = await makeWorkspace(wire)
  const service = { name: 'fake', provider: 'ollama', modelName: 'a:3b', endpointBaseUrl }
  const llmServiceId = await wire.make(`${workspace}/llm-services`, service, 'llmServiceId')
  const agentId = await wire.make(`${workspace}/agents`, { name: 'counter', llmServiceId }, 'agentId')
  const conversations = `${workspace}/agents/${agentId}/conversations`
  return `${conversations}/${await wire.make(conversations, {}, 'conversationId')}`
}

async function makeSlowPlace(wire: Wire, provider: FakeProvider): Promise<string> {
  const workspace = await makeWorkspace(wire)
  const service = {
    name: 'slow',
    provider: 'ollama',
    modelName: 'fake-model',
    embeddingDimension: 4,
    endpointBaseUrl: provider.url,
  }
  const embeddingServiceId = await wire.make(`${workspace}/embedding-services`, service, 'embeddingServiceId')
  return makeKnowledgeBase(wire, workspace, { embeddingServiceId })
}
