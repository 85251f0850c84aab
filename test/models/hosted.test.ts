import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { createEnvironment } from '../../src/config/config-environment.ts'
import { isReleased, type ReleasePolicy } from '../../src/config/release-policy.ts'
import { WbError } from '../../src/contract/errors.ts'
import type { EmbeddingService } from '../../src/contract/services.ts'
import { EndpointGuard } from '../../src/models/endpoint-guard.ts'
import { openEmbedder } from '../../src/models/open.ts'
import { type Outbound, type OutboundNetwork, openOutboundNetwork } from '../../src/models/outbound.ts'
import { RequestPaces } from '../../src/models/request-paces.ts'
import { type EmbeddingServer, startEmbeddingServer, vectorFor } from '../fakes/embedding-server.ts'

const workspaceId = '11111111-1111-4111-8111-111111111111'
const dimension = 4
const forever = new AbortController().signal

let provider: EmbeddingServer
let network: OutboundNetwork
beforeEach(async () => {
  network = openOutboundNetwork({ guard: new EndpointGuard({ blocksPrivate: false, exceptions: [] }) })
  provider = await startEmbeddingServer(dimension)
})
afterEach(async () => {
  vi.unstubAllEnvs()
  await network.close()
  await provider.close()
})

interface Setting {
  service?: Partial<EmbeddingService>
  policy?: Partial<ReleasePolicy>
  variables?: Record<string, string>
  outbound?: Outbound
  paces?: RequestPaces
}

/** An embedder of a service at the fake provider, with a released key. */
function open({ service, policy, variables, outbound = network.send, paces }: Setting = {}) {
  const whole: EmbeddingService = {
    embeddingServiceId: '33333333-3333-4333-8333-333333333333',
    workspaceId,
    createdAt: '2026-01-01T00:00:00.000Z',
    updatedAt: '2026-01-01T00:00:00.000Z',
    name: 'hosted',
    description: null,
    status: 'active',
    endpointBaseUrl: provider.url,
    endpointPath: null,
    requestTimeoutMs: null,
    authType: 'api_key',
    credentialRef: 'env:KEY',
    provider: 'openai',
    modelName: 'some-model',
    embeddingDimension: dimension,
    distanceMetric: 'cosine',
    maxBatchSize: null,
    maxInputTokens: null,
    supportedLanguages: [],
    supportedContent: [],
    ...service,
  }
  const release: ReleasePolicy = {
    allow: [{ ref: 'env:KEY', hosts: [provider.host] }],
    reserved: [],
    secretsDir: '/nowhere/secrets',
    isSingleUser: false,
    ...policy,
  }
  const deps = {
    environment: createEnvironment({ KEY: 'sk-secret', ...variables }),
    isReleased: async (ref: string, host: string, workspace: string) =>
      isReleased(ref, host, workspace, release),
    outbound,
  }
  return openEmbedder(whole, deps, paces)
}

async function failureOf(work: Promise<unknown>): Promise<WbError> {
  const error = await work.then(
    () => undefined,
    (error: unknown) => error,
  )
  if (!(error instanceof WbError))
    throw new Error('it did not fail with a registered error', { cause: error })
  return error
}

const texts = (count: number) => Array.from({ length: count }, (_, at) => `text ${at}`)
const expected = (of: string[]) => of.map(text => Float32Array.from(vectorFor(text, dimension)))
/** No pause before a retry. */
const atOnce = { 'retry-after': '0' }

describe('embedding protocol', () => {
  test('sends texts with model and key, and returns vectors in order', async () => {
    provider.script({ reversed: true })
    expect(await open().embed(['a', 'bb', 'ccc'], forever)).toEqual(expected(['a', 'bb', 'ccc']))
    expect(provider.received).toHaveLength(1)
    const [request] = provider.received
    expect(request?.url).toBe('/v1/embeddings')
    expect(request?.body).toEqual({
      model: 'some-model',
      input: ['a', 'bb', 'ccc'],
      encoding_format: 'float',
    })
    expect(request?.headers.authorization).toBe('Bearer sk-secret')
  })

  test('sends no request without texts', async () => {
    expect(await open().embed([], forever)).toEqual([])
    expect(provider.received).toEqual([])
  })

  test.each([
    ['text-embedding-3-small', dimension],
    ['openai/text-embedding-3-large', dimension],
    ['text-embedding-ada-002', undefined],
    ['nomic-embed-text', undefined],
  ])('%s is requested with dimensions: %s', async (modelName, dimensions) => {
    await open({ service: { modelName } }).embed(['a'], forever)
    expect(provider.received[0]?.body.dimensions).toBe(dimensions)
  })

  test('sends only its own headers, and ignores environment variables of the SDK', async () => {
    vi.stubEnv('OPENAI_CUSTOM_HEADERS', 'x-planted: 1')
    vi.stubEnv('OPENAI_ORG_ID', 'planted')
    vi.stubEnv('OPENAI_BASE_URL', 'http://127.0.0.1:9/planted')
    vi.stubEnv('OPENAI_API_KEY', 'planted')
    await open().embed(['a'], forever)
    const { headers } = provider.received[0]!
    expect(JSON.stringify(headers)).not.toMatch(/planted|stainless/)
    expect(headers['user-agent']).toBe('workbase')
  })

  test('cohere gets at most 96 texts per request, regardless of the service', async () => {
    const cohere = open({ service: { provider: 'cohere', maxBatchSize: 500 } })
    const all = texts(200)
    expect(await cohere.embed(all, forever)).toEqual(expected(all))
    expect(provider.received.map(({ body }) => body.texts?.length).sort()).toEqual([8, 96, 96])
    expect(provider.received.every(({ url }) => url === '/v1/embed')).toBe(true)
  })

  test('cohere can have an address that includes the path of the call', async () => {
    const service = { provider: 'cohere', endpointPath: '/embed' }
    await open({ service }).embed(['a'], forever)
    expect(provider.received[0]?.url).toBe('/v1/embed')
  })

  test.each([
    ['without vectors', '{"id": "x"}'],
    ['with vectors of another kind', '{"embeddings": {"int8": [[1, 2, 3, 4]]}}'],
    ['with too few of them', '{"embeddings": {"float": []}}'],
  ])('rejects a response of cohere %s', async (_what, body) => {
    provider.script({ body })
    const failure = await failureOf(open({ service: { provider: 'cohere' } }).embed(['a'], forever))
    expect(failure.code).toBe('embedding_unavailable')
  })

  test('cohere requests contain its own parameters and the kind of text', async () => {
    const cohere = open({ service: { provider: 'cohere', modelName: 'embed-v4.0' } })
    expect(await cohere.embed(['a', 'b'], forever, 'query')).toEqual(expected(['a', 'b']))
    await cohere.embed(['a'], forever)
    expect(provider.received.map(({ url }) => url)).toEqual(['/v1/embed', '/v1/embed'])
    expect(provider.received[0]?.body).toEqual({
      model: 'embed-v4.0',
      texts: ['a', 'b'],
      input_type: 'search_query',
      embedding_types: ['float'],
      output_dimension: dimension,
    })
    expect(provider.received[1]?.body.input_type).toBe('search_document')
  })
})

describe('address of the provider', () => {
  const dialled = async (service: Partial<EmbeddingService>, variables: Record<string, string> = {}) => {
    const urls: string[] = []
    const outbound: Outbound = async url => {
      urls.push(url.href)
      return Response.json({ data: [{ index: 0, embedding: [1, 2, 3, 4] }] })
    }
    const policy = { allow: [{ prefix: 'env:K' }] }
    await open({ service: { endpointBaseUrl: null, ...service }, variables, policy, outbound }).embed(
      ['a'],
      forever,
    )
    return urls[0]
  }

  test('each provider has a default address', async () => {
    expect(await dialled({ provider: 'openai' })).toBe('https://api.openai.com/v1/embeddings')
    expect(await dialled({ provider: 'openrouter' })).toBe('https://openrouter.ai/api/v1/embeddings')
    expect(await dialled({ provider: 'ollama', credentialRef: null })).toBe(
      'http://localhost:11434/v1/embeddings',
    )
  })

  test('OLLAMA_BASE_URL gets /v1 if its path is empty, and a service overrides it', async () => {
    const ollama = (base: string, service: Partial<EmbeddingService> = {}) =>
      dialled({ provider: 'ollama', credentialRef: null, ...service }, { OLLAMA_BASE_URL: base })
    expect(await ollama('http://box:11434/')).toBe('http://box:11434/v1/embeddings')
    expect(await ollama('http://box:11434/api/v2//')).toBe('http://box:11434/api/v2/embeddings')
    expect(await ollama('http://box', { endpointBaseUrl: 'http://other' })).toBe('http://other/v1/embeddings')
    const failure = await failureOf(ollama('box:11434'))
    expect(failure.code).toBe('embedding_unavailable')
    expect(failure.message).toContain('OLLAMA_BASE_URL')
  })

  test('endpointBaseUrl is joined with endpointPath', async () => {
    const at = (endpointBaseUrl: string, endpointPath: string | null) =>
      dialled({ endpointBaseUrl, endpointPath })
    expect(await at('https://a.example/', '/proxy/v1')).toBe('https://a.example/proxy/v1/embeddings')
    expect(await at('https://a.example/v1', '/embeddings')).toBe('https://a.example/v1/embeddings')
    expect(await at('https://a.example', null)).toBe('https://a.example/embeddings')
    expect(await at('https://a.example/v1?api-version=3', null)).toBe(
      'https://a.example/v1/embeddings?api-version=3',
    )
  })
})

describe('batches', () => {
  test('a request has 64 texts by default, and at most two requests are concurrent', async () => {
    const all = texts(300)
    provider.script(...Array.from({ length: 5 }, () => ({ delayMs: 5 })))
    expect(await open().embed(all, forever)).toEqual(expected(all))
    expect(provider.received.map(({ body }) => body.input?.length).sort()).toEqual([44, 64, 64, 64, 64])
    expect(provider.openMax).toBe(2)
    await open({ service: { maxBatchSize: 150 } }).embed(all, forever)
    expect(provider.received.slice(5).map(({ body }) => body.input?.length)).toEqual([150, 150])
  })

  test('long texts have separate requests', async () => {
    const long = ['a', 'b', 'c'].map(letter => letter.repeat(150_000))
    await open().embed([...long, 'd'], forever)
    expect(provider.received.map(({ body }) => body.input?.length).sort()).toEqual([1, 1, 2])
  })

  test('the tokens of a request are limited for texts in any script', async () => {
    const chinese = Array.from({ length: 4 }, (_, at) => String(at) + '员'.repeat(20_000))
    await open().embed(chinese, forever)
    expect(provider.received.map(({ body }) => body.input?.length)).toEqual([2, 2])
  })

  test('a text that occurs several times is sent once', async () => {
    expect(await open().embed(['a', 'b', 'a', 'a'], forever)).toEqual(expected(['a', 'b', 'a', 'a']))
    expect(provider.received.map(({ body }) => body.input)).toEqual([['a', 'b']])
  })

  test.each([
    [413, '{"error": "request entity too large"}'],
    [400, '{"error": {"message": "max 8192 tokens: too many tokens in the request"}}'],
  ])('a request that is too large for the provider (%i) is sent in smaller ones', async (status, body) => {
    provider.script({ status, body }, { status, body })
    const service = { maxBatchSize: 8 }
    expect(await open({ service }).embed(texts(8), forever)).toEqual(expected(texts(8)))
    expect(provider.received.map(request => request.body.input?.length)).toEqual([8, 4, 2, 2, 4])
    provider.script({ status, body })
    const failure = await failureOf(open().embed(['a'], forever))
    expect(failure.message).toMatch(/rejected a text that is too long for its model/)
    expect(failure.hint).toMatch(/smaller chunks/)
  })

  test('all embedders of a service together send at most eight requests with documents at once', async () => {
    provider.script(...Array.from({ length: 40 }, () => ({ delayMs: 20 })))
    const paces = new RequestPaces()
    const embedder = (n: number) =>
      open({ service: { maxBatchSize: 1 }, paces }).embed([`${n}`, `x${n}`], forever)
    await Promise.all(Array.from({ length: 20 }, (_, n) => embedder(n)))
    expect(provider.openMax).toBe(8)
  })

  test('the first failure aborts the other requests', async () => {
    provider.script({ status: 400 }, { hang: 'before headers' })
    await failureOf(open({ service: { maxBatchSize: 1 } }).embed(texts(50), forever))
    await expect.poll(() => provider.abandoned).toBe(1)
    expect(provider.received).toHaveLength(2)
  })
})

describe('retries', () => {
  test.each([408, 409, 429, 500, 503])('status %i is retried', async status => {
    provider.script({ status, headers: atOnce })
    expect(await open().embed(['a'], forever)).toEqual(expected(['a']))
    expect(provider.received).toHaveLength(2)
  })

  test('S7.3-embedding_unavailable: a request has at most three attempts', async () => {
    provider.script(
      ...Array.from({ length: 9 }, () => ({ status: 500, headers: atOnce, body: '{"error":"planted"}' })),
    )
    const failure = await failureOf(open().embed(['a'], forever))
    expect(provider.received).toHaveLength(3)
    expect(failure).toMatchObject({ code: 'embedding_unavailable', status: 503 })
    expect(failure.message).toBe('embedding service "hosted" (openai) responded with status 500')
  })

  test.each([400, 401, 403, 404, 422])('status %i is not retried', async status => {
    provider.script({ status, body: '{"error":{"message":"planted sk-secret"}}' })
    const failure = await failureOf(open().embed(['a'], forever))
    expect(provider.received).toHaveLength(1)
    expect(failure.code).toBe('embedding_unavailable')
    expect(failure.message).toBe(`embedding service "hosted" (openai) responded with status ${status}`)
    expect(failure.message + failure.hint).not.toMatch(/planted|sk-secret/)
  })

  test('incomplete JSON is named, and requested once more', async () => {
    provider.script({ body: '{"data": [' })
    expect(await open().embed(['a'], forever)).toEqual(expected(['a']))
    provider.script({ body: '{"data": [' }, { body: '{"data": [' })
    const failure = await failureOf(open().embed(['a'], forever))
    expect(failure.message).toBe('embedding service "hosted" (openai) sent incomplete JSON (10 bytes)')
    expect(provider.received).toHaveLength(4)
  })

  test('a job repeats a request six times', async () => {
    const steps = Array.from({ length: 6 }, () => ({ status: 500, headers: atOnce }))
    provider.script(...steps)
    expect(await open().embed(['a'], forever, 'document', { retryPolicy: 'job' })).toEqual(expected(['a']))
    expect(provider.received).toHaveLength(7)
  })

  test('a pause that a provider requests also delays later requests to the service', async () => {
    provider.script({ status: 429, headers: { 'retry-after': '1' } })
    const paces = new RequestPaces()
    const first = open({ paces }).embed(['a'], forever)
    await expect.poll(() => provider.received.length).toBe(1)
    await new Promise(resolve => setTimeout(resolve, 50))
    const startedMs = performance.now()
    await open({ paces }).embed(['b'], forever)
    expect(performance.now() - startedMs).toBeGreaterThan(700)
    await first
    expect(provider.received).toHaveLength(3)
  })

  test('a request does not wait for a long pause that a job accepts', async () => {
    const limited = { status: 429, headers: { 'retry-after': '60' } }
    provider.script(limited, limited)
    const paces = new RequestPaces()
    const stop = new AbortController()
    const job = open({ paces }).embed(['a'], stop.signal, 'document', { retryPolicy: 'job' })
    await expect.poll(() => provider.received.length).toBe(1)
    await new Promise(resolve => setTimeout(resolve, 50))
    const failure = await failureOf(open({ paces }).embed(['b'], forever, 'query'))
    expect(failure.hint).toMatch(/limits requests/)
    stop.abort(new Error('stopped'))
    await expect(job).rejects.toThrow('stopped')
    expect(provider.received).toHaveLength(2)
  })

  test('a request is not retried if the provider requests a long pause', async () => {
    provider.script({ status: 429, headers: { 'retry-after': '3600' } })
    const failure = await failureOf(open().embed(['a'], forever))
    expect(failure.hint).toMatch(/limits requests/)
    expect(provider.received).toHaveLength(1)
  })

  test('a retry date is relative to the date of the response', async () => {
    const at = (time: number) => new Date(time).toUTCString()
    provider.script({ status: 503, headers: { date: at(1_000_000), 'retry-after': at(4_000_000) } })
    await failureOf(open().embed(['a'], forever))
    expect(provider.received).toHaveLength(1)
    provider.script({ status: 503, headers: { date: at(1_000_000), 'retry-after': at(1_000_000) } })
    expect(await open().embed(['a'], forever)).toEqual(expected(['a']))
  })
})

describe('S7.3-embedding_unavailable: a provider that', () => {
  test('is not reachable', async () => {
    const gone = open()
    await provider.close()
    const failure = await failureOf(gone.embed(['a'], forever))
    expect(failure.message).toBe(
      'embedding service "hosted" (openai) could not be reached: the connection was refused',
    )
    provider = await startEmbeddingServer(dimension)
  })

  test.each(['before headers', 'in body'] as const)('stops responding %s', async hang => {
    provider.script({ hang }, { hang }, { hang })
    const failure = await failureOf(open({ service: { requestTimeoutMs: 30 } }).embed(['a'], forever))
    expect(failure.message).toBe('embedding service "hosted" (openai) did not respond in time')
    expect(provider.received).toHaveLength(3)
  })

  test.each([
    ['is no JSON', { body: 'vectors' }],
    ['is empty', { body: '' }],
    ['is of another form', { body: '{"vectors": []}' }],
    ['holds null', { body: '{"data": [null]}' }],
    ['holds no vector', { body: '{"data": [{"index": 0, "embedding": "AAAA"}]}' }],
    ['points beyond the texts', { body: '{"data": [{"index": 7, "embedding": [1, 2, 3, 4]}]}' }],
    ['is too short', { missing: 1 }],
    ['holds null for a number', { body: '{"data": [{"embedding": [1, null, 3, 4]}]}' }],
    ['holds what is too large for 32 bits', { body: '{"data": [{"embedding": [1, 1e300, 3, 4]}]}' }],
    ['holds text for numbers', { body: '{"data": [{"embedding": ["1", "2", "3", "4"]}]}' }],
  ])('sends a response that %s', async (_, step) => {
    provider.script(step)
    expect((await failureOf(open().embed(['a'], forever))).code).toBe('embedding_unavailable')
  })

  test('returns one index twice', async () => {
    const twice = { index: 0, embedding: [1, 2, 3, 4] }
    provider.script({ body: JSON.stringify({ data: [twice, twice] }) })
    expect((await failureOf(open().embed(['a', 'b'], forever))).code).toBe('embedding_unavailable')
  })

  test('sends a response that is too long', async () => {
    const pulls = { count: 0 }
    const long = () =>
      new ReadableStream({
        pull(controller) {
          if (++pulls.count % 50 === 0) controller.close()
          else controller.enqueue(new Uint8Array(100_000))
        },
      })
    const outbound: Outbound = async () => new Response(long(), { headers: atOnce })
    const service = { requestTimeoutMs: 60_000 }
    expect((await failureOf(open({ outbound, service }).embed(['a'], forever))).message).toBe(
      'embedding service "hosted" (openai) sent a response that is too large',
    )
    expect(pulls.count, 'over about 1 MB for one vector, the rest is not read').toBeLessThan(20)
  })

  test('redirects are not followed', async () => {
    const other = await startEmbeddingServer(dimension)
    provider.script({ status: 307, headers: { location: `${other.url}/embeddings` } })
    const failure = await failureOf(open().embed(['a'], forever))
    expect(failure.message).toContain('responded with a redirect, which is not followed')
    expect([provider.received.length, other.received.length]).toEqual([1, 0])
    await other.close()
  })
})

test('S7.3-embedding_dimension_mismatch: vectors of another length', async () => {
  for (const wrong of [dimension - 1, dimension + 1, 0]) {
    provider.script({ dimension: wrong })
    const failure = await failureOf(open().embed(['a'], forever))
    expect(failure).toMatchObject({ code: 'embedding_dimension_mismatch', status: 400 })
    expect(failure.message).toBe(
      `embedding service "hosted" declares ${dimension} dimensions, but its model returned ${wrong}`,
    )
  }
})

describe('S7.3-embedding_unavailable: the credential', () => {
  const refused = async (setting: Setting) => {
    const failure = await failureOf(open(setting).embed(['a'], forever))
    expect(failure.code).toBe('embedding_unavailable')
    expect(failure.message + failure.hint).not.toContain('sk-')
    expect(provider.received).toEqual([])
    return failure
  }

  test('that is not released is not sent', async () => {
    const failure = await refused({
      service: { credentialRef: 'env:BOOTSTRAP' },
      variables: { BOOTSTRAP: 'sk-boot' },
    })
    expect(failure.message).toContain(`uses env:BOOTSTRAP, which is not released for ${provider.host}`)
    expect(failure.hint).toContain(`wb services allow env:BOOTSTRAP --host ${provider.host}`)
  })

  test('of a provider is not sent to a host from a service', async () => {
    await refused({
      service: { credentialRef: 'env:OPENAI_API_KEY' },
      variables: { OPENAI_API_KEY: 'sk-real' },
    })
  })

  test('of the configuration is not sent, released or not', async () => {
    await refused({ policy: { reserved: ['env:KEY'] } })
  })

  test('that is missing, not set, or invalid in a header prevents the request', async () => {
    expect((await refused({ service: { credentialRef: null, endpointBaseUrl: null } })).hint).toContain(
      'env:OPENAI_API_KEY',
    )
    expect((await refused({ variables: { KEY: '' } })).message).toContain(
      'cannot use its credential: env:KEY is not set',
    )
    await refused({ variables: { KEY: 'sk-a\nx-planted: 1' } })
  })

  test('is not sent to another machine without encryption', async () => {
    const failure = await refused({
      service: { endpointBaseUrl: 'http://models.example/v1' },
      policy: { allow: [{ ref: 'env:KEY' }] },
    })
    expect(failure.message).toContain('without encryption')
  })

  test('is read for each call, and can be released later', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'wb-key-'))
    mkdirSync(join(folder, workspaceId))
    const file = join(folder, workspaceId, 'key')
    writeFileSync(file, 'sk-one\n')
    const embedder = open({ service: { credentialRef: `file:${file}` }, policy: { secretsDir: folder } })
    await embedder.embed(['a'], forever)
    writeFileSync(file, 'sk-two')
    await embedder.embed(['a'], forever)
    expect(provider.received.map(({ headers }) => headers.authorization)).toEqual([
      'Bearer sk-one',
      'Bearer sk-two',
    ])
    rmSync(folder, { recursive: true })
  })

  test('is not required or sent for ollama', async () => {
    await open({ service: { provider: 'ollama', credentialRef: null } }).embed(['a'], forever)
    expect(provider.received[0]?.headers).not.toHaveProperty('authorization')
  })
})

describe('a caller', () => {
  test('that disconnects aborts the request with its reason', async () => {
    provider.script({ hang: 'before headers' })
    const caller = new AbortController()
    const work = open().embed(['a'], caller.signal)
    await expect.poll(() => provider.received).toHaveLength(1)
    caller.abort(new Error('gone'))
    await expect(work).rejects.toThrow('gone')
    await expect.poll(() => provider.abandoned).toBe(1)
  })

  test('that disconnects before a retry prevents it', async () => {
    provider.script({ status: 429, headers: { 'retry-after': '15' } })
    const caller = new AbortController()
    const work = open().embed(['a'], caller.signal)
    await expect.poll(() => provider.received).toHaveLength(1)
    caller.abort(new Error('gone'))
    await expect(work).rejects.toThrow('gone')
    expect(provider.received).toHaveLength(1)
  })

  test('that has disconnected before prevents the request', async () => {
    await expect(open().embed(['a'], AbortSignal.abort(new Error('gone')))).rejects.toThrow('gone')
    expect(provider.received).toEqual([])
  })
})

test('S7.3-embedding_unavailable: an unsupported provider', () => {
  for (const name of ['nvidia', 'constructor'])
    expect(() => open({ service: { provider: name } })).toThrow(
      expect.objectContaining({ code: 'embedding_unavailable' }),
    )
})
