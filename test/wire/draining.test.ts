import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { type FakeProvider, startFakeProvider } from './fake-provider.ts'
import { makeKnowledgeBase, makeWorkspace } from './fixtures.ts'
import { type Serving, serve, Wire } from './harness.ts'

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 })

let serving: Serving
let provider: FakeProvider
const wire = new Wire()

beforeAll(async () => {
  serving = await serve()
  provider = await startFakeProvider(4)
  wire.open(serving.url)
})
afterAll(async () => {
  await wire.close()
  await provider.close()
  serving.process.kill('SIGKILL')
})

test('S7.3-draining S7.3-10: after SIGTERM new requests get 503, the one in flight finishes, exit status 0', async () => {
  const kb = await makeSlowPlace()
  let release = () => {}
  provider.hold = new Promise(resolve => {
    release = resolve
  })
  const inFlight = wire.send(`POST ${kb}/ingest`, { json: { text: 'Slow.' } })
  await vi.waitUntil(() => provider.received.length === 1, { timeout: 10_000 })
  const ended = serving.stop()
  await vi.waitUntil(async () => (await wire.send('GET /readyz')).status === 503, { timeout: 10_000 })
  await wire.refused('GET /readyz', {}, 503, 'draining')
  await wire.refused('GET /api/v1/workspaces', {}, 503, 'draining')
  await wire.refused('POST /api/v1/workspaces', { json: { name: 'late' } }, 503, 'draining')
  expect((await wire.send('GET /healthz')).status).toBe(200)
  release()
  expect((await inFlight).status).toBe(201)
  expect(await ended).toBe(0)
})

async function makeSlowPlace(): Promise<string> {
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
