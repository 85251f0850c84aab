import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { deadUrl, type FakeProvider, startFakeProvider } from './fake-provider.ts'
import { idOf, ingest, makeKnowledgeBase, makeWorkspace } from './fixtures.ts'
import { type Row, useServer } from './harness.ts'

const secret = 'sk-operator-secret-0123456789'
const wire = useServer({ env: { OPENAI_API_KEY: secret } })
const dimension = 8
let provider: FakeProvider

beforeAll(async () => {
  provider = await startFakeProvider(dimension)
})
beforeEach(() => {
  Object.assign(provider, { dimension, refusals: [], received: [] })
})
afterAll(() => provider.close())

/** A knowledge base that uses the fake provider by default. */
async function makeRemotePlace(service: object = {}, workspace?: string): Promise<string> {
  const home = workspace ?? (await makeWorkspace(wire))
  const embeddingServiceId = await wire.make(
    `${home}/embedding-services`,
    {
      name: 'remote',
      provider: 'ollama',
      modelName: 'fake-model',
      embeddingDimension: dimension,
      endpointBaseUrl: provider.url,
      ...service,
    },
    'embeddingServiceId',
  )
  const chunking = (await wire.items(`${home}/chunking-services`)).find(
    item => item.name === 'recursive-char-1000',
  )
  return makeKnowledgeBase(wire, home, { embeddingServiceId, chunkingServiceId: chunking!.chunkingServiceId })
}

describe('an OpenAI-compatible provider', () => {
  test('embeds chunks and queries in batches, with its path and model', async () => {
    const kb = await makeRemotePlace()
    const chunker = { maxChars: 10, minChars: 0, overlapChars: 0 }
    await ingest(wire, kb, { text: 'aaaa bbbb cccc dddd eeee ffff', chunker })
    const sent = provider.received
    expect(sent.every(call => call.path === '/v1/embeddings' && call.model === 'fake-model')).toBe(true)
    expect(sent).toHaveLength(1)
    expect(sent[0]!.input.join('')).toBe('aaaa bbbb cccc dddd eeee ffff')
    const reply = await wire.send(`POST ${kb}/search`, { json: { text: 'aaaa bbbb ', hybrid: false } })
    expect((reply.body as Row[])[0]).toMatchObject({ payload: { chunkText: 'aaaa bbbb ' } })
    expect((reply.body as { score: number }[])[0]!.score).toBeCloseTo(1, 5)
  })

  test('gets at most maxBatchSize texts per call', async () => {
    const kb = await makeRemotePlace({ maxBatchSize: 2 })
    await ingest(wire, kb, {
      text: 'aaaa bbbb cccc dddd eeee',
      chunker: { maxChars: 5, minChars: 0, overlapChars: 0 },
    })
    expect(provider.received.length).toBeGreaterThan(1)
    for (const call of provider.received) expect(call.input.length).toBeLessThanOrEqual(2)
  })

  test('gets another request after a temporary failure', async () => {
    const kb = await makeRemotePlace()
    provider.refusals = [503]
    await ingest(wire, kb, { text: 'Second time lucky.' })
    expect(provider.received).toHaveLength(2)
  })

  test.each(['openai', 'openrouter'])('requires no key on your own server: %s', async name => {
    const kb = await makeRemotePlace({ provider: name, credentialRef: null, endpointBaseUrl: provider.url })
    await ingest(wire, kb, { text: 'Without a key.' })
    expect(provider.received.map(({ authorization }) => authorization ?? null)).toEqual([null])
  })

  test('is called at its base URL followed by endpointPath', async () => {
    const kb = await makeRemotePlace({
      endpointBaseUrl: provider.url.replace(/\/v1$/, ''),
      endpointPath: '/v1',
    })
    await ingest(wire, kb, { text: 'By another way.' })
    expect(provider.received[0]!.path).toBe('/v1/embeddings')
  })

  test('is not called for lexical search or search by vector', async () => {
    const kb = await makeRemotePlace()
    await ingest(wire, kb, { text: 'One passage.' })
    provider.received.length = 0
    expect(
      (await wire.send(`POST ${kb}/search`, { json: { text: 'passage', lexicalWeight: 1 } })).body,
    ).toHaveLength(1)
    expect(
      (await wire.send(`POST ${kb}/search`, { json: { vector: [1, 0, 0, 0, 0, 0, 0, 0] } })).body,
    ).toHaveLength(1)
    expect(provider.received).toEqual([])
  })
})

describe('S7.3-embedding_unavailable', () => {
  /** Services with and without a key, each in a state in which embedding fails. */
  test.each([
    ['an address where nothing listens', 'ollama', deadUrl, /could not be reached/],
    ['a service of OpenAI that names no credential', 'openai', () => null, /api\.openai\.com requires one/],
  ])('%s', async (_, name, url, words) => {
    const kb = await makeRemotePlace({ provider: name, endpointBaseUrl: await url() })
    const refused = (line: string, json: unknown) =>
      wire.refused(line, { json }, 503, 'embedding_unavailable', words)
    await refused(`POST ${kb}/ingest`, { text: 'Lost.' })
    await refused(`POST ${kb}/search`, { text: 'lost' })
    await refused(`POST ${kb}/records`, { records: [{ id: 'a', text: 'lost' }] })
    expect(provider.received).toEqual([])
  })

  test('keeps a failed document, and the text can be sent again', async () => {
    const kb = await makeRemotePlace()
    provider.refusals = Array(20).fill(401)
    await wire.refused(`POST ${kb}/ingest`, { json: { text: 'Try me again.' } }, 503, 'embedding_unavailable')
    const [failed] = await wire.items(`${kb}/documents`)
    expect(failed).toMatchObject({ status: 'failed', errorMessage: expect.stringMatching(/\S/) })
    provider.refusals = []
    await ingest(wire, kb, { text: 'Try me again.' })
    const statuses = (await wire.items(`${kb}/documents`)).map(item => item.status)
    expect(statuses.filter(status => status === 'ready')).toHaveLength(1)
  })

  test.each([401, 404, 500])(
    'is returned if a provider responds with %i, without the text of the provider',
    async status => {
      const kb = await makeRemotePlace()
      provider.refusals = Array(20).fill(status)
      const reply = await wire.refused(
        `POST ${kb}/search`,
        { json: { text: 'x' } },
        503,
        'embedding_unavailable',
      )
      expect(reply.text).not.toContain('sk-provider-detail')
      const listed = await wire.send(`GET ${kb}/documents`)
      expect(listed.text).not.toContain('sk-provider-detail')
    },
  )

  test('is returned for an unsupported provider', async () => {
    const kb = await makeRemotePlace({ provider: 'nvidia', endpointBaseUrl: null })
    await wire.refused(`POST ${kb}/ingest`, { json: { text: 'x' } }, 503, 'embedding_unavailable')
  })

  test('a secret is never sent to a host that it is not released for [security rule 1]', async () => {
    for (const credentialRef of ['env:OPENAI_API_KEY', 'env:HOME', 'file:/etc/hostname']) {
      const kb = await makeRemotePlace({ provider: 'openai', credentialRef, authType: 'api_key' })
      const reply = await wire.refused(
        `POST ${kb}/ingest`,
        { json: { text: 'x' } },
        503,
        'embedding_unavailable',
      )
      expect(reply.text).not.toContain(secret)
    }
    expect(provider.received).toEqual([])
  })

  test('a file below secrets/<workspaceId> in the data directory is released for this workspace only', async () => {
    const workspace = await makeWorkspace(wire)
    const folder = join(wire.serving.dataDir, 'secrets', idOf(workspace))
    await mkdir(folder, { recursive: true, mode: 0o700 })
    await writeFile(join(folder, 'provider-key'), 'sk-of-this-workspace\n', { mode: 0o600 })
    const service = {
      provider: 'openai',
      authType: 'api_key',
      credentialRef: `file:${join(folder, 'provider-key')}`,
    }
    await ingest(wire, await makeRemotePlace(service, workspace), { text: 'Released.' })
    expect(provider.received[0]!.authorization).toBe('Bearer sk-of-this-workspace')
    provider.received.length = 0
    const foreign = await makeRemotePlace(service)
    await wire.refused(`POST ${foreign}/ingest`, { json: { text: 'Not.' } }, 503, 'embedding_unavailable')
    expect(provider.received).toEqual([])
  })
})

describe('S7.3-embedding_dimension_mismatch', () => {
  test.each([dimension - 1, dimension + 1])('is returned for %i numbers from a model of 8', async length => {
    const kb = await makeRemotePlace()
    provider.dimension = length
    await wire.refused(
      `POST ${kb}/ingest`,
      { json: { text: 'Ill fitting.' } },
      400,
      'embedding_dimension_mismatch',
    )
    await wire.refused(`POST ${kb}/search`, { json: { text: 'x' } }, 400, 'embedding_dimension_mismatch')
    const records = [{ id: 'a', text: 'x' }]
    await wire.refused(`POST ${kb}/records`, { json: { records } }, 400, 'embedding_dimension_mismatch')
    provider.dimension = dimension
    await wire.exchange(`POST ${kb}/search`, { text: 'x', hybrid: false }, 200, [])
    expect((await wire.items(`${kb}/documents`)).map(item => item.status)).toEqual(['failed'])
  })
})

describe('S8-04: text over the limit is rejected before the provider is called', () => {
  test('in search, record and ingest', async () => {
    const kb = await makeRemotePlace()
    const long = 'x'.repeat(8_193)
    await wire.refused(`POST ${kb}/search`, { json: { text: long } }, 400, 'validation_error', /^text: /)
    const records = [
      { id: 'a', text: 'fine' },
      { id: 'b', text: 'x'.repeat(16_385) },
    ]
    await wire.refused(
      `POST ${kb}/records`,
      { json: { records } },
      400,
      'validation_error',
      /^records\.1\.text: /,
    )
    const text = 'x'.repeat(20_000_001)
    await wire.refused(`POST ${kb}/ingest`, { json: { text } }, 400, 'validation_error', /^text: /)
    expect(provider.received).toEqual([])
    expect(await wire.items(`${kb}/documents`)).toEqual([])
    await wire.exchange(`POST ${kb}/search`, { vector: [1, 0, 0, 0, 0, 0, 0, 0] }, 200, [])
  })
})

test('a failed embedding of an overwrite keeps the old document and its hits', async () => {
  const kb = await makeRemotePlace()
  const old = await ingest(wire, kb, { text: 'Old and kept.', sourceFilename: 'a.txt' })
  provider.refusals = Array(20).fill(401)
  const json = { text: 'New and lost.', sourceFilename: 'a.txt', overwriteOnNameConflict: true }
  await wire.refused(`POST ${kb}/ingest`, { json }, 503, 'embedding_unavailable')
  expect(await wire.get(`${kb}/documents/${old}`)).toMatchObject({ status: 'ready' })
  const found = await wire.send(`POST ${kb}/search`, { json: { text: 'kept', lexicalWeight: 1 } })
  expect(found.body).toMatchObject([{ payload: { documentId: old } }])
  const lost = await wire.send(`POST ${kb}/search`, { json: { text: 'lost', lexicalWeight: 1 } })
  expect(lost.body).toEqual([])
})
