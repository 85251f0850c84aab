import { WbError } from '../contract/errors.ts'
import type { EmbeddingService } from '../contract/services.ts'
import { type Dialect, dialects } from './dialects.ts'
import type { Embedder, Purpose } from './embedder.ts'
import { credentialFor, type Dialling, endpointOf, unavailable } from './endpoint.ts'
import { type EndpointRefused, refusalIn } from './guard.ts'
import { type Outbound, type OutboundAnswer, readWhole, retryAfterMs } from './outbound.ts'

const batchSizeDefault = 64
/** Keeps a request below the 300,000 tokens that providers take, whatever the script. */
const textCharsPerRequestMax = 200_000
/** Keeps an answer near 24 MB. */
const numbersPerRequestMax = 1 << 20
const answerBytesMax = 64_000_000
const requestsAtOnce = 2
const retriesMax = 2
const timeoutMsDefault = 30_000
const timeoutMsMax = 600_000
/** A provider that asks for a longer pause is not asked again. */
const retryAfterMsMax = 20_000

type Sdk = typeof import('openai')
type Batch = { start: number; texts: readonly string[] }

/**
 * A model behind the OpenAI-compatible wire, or Cohere's.
 *
 * A request that times out, cannot connect, or is answered with 408, 409, 429 or 5xx is tried twice more, after the
 * pause that the provider asks for. Where it is dialled and with what is decided anew at each call.
 *
 * @see contract: embedding providers
 */
export function hostedEmbedder(dialling: Dialling, outbound: Outbound): Embedder {
  const { service } = dialling
  return {
    dimension: service.embeddingDimension,
    async embed(texts, signal, purpose = 'document') {
      signal.throwIfAborted()
      if (texts.length === 0) return []
      const endpoint = endpointOf(dialling)
      const credential = credentialFor(dialling, endpoint)
      const sdk = await import('openai')
      const refused = new AbortController()
      const send = unlessRefused(outbound, ({ message, hint }) =>
        refused.abort(unavailable(service, `cannot be dialled: ${message}`, { hint })),
      )
      const client = clientFor(sdk, service, endpoint, exchange(send, endpoint, credential))
      const ask = (batch: Batch, until: AbortSignal) =>
        vectorsOf(sdk, client, service, dialects[dialling.provider], { ...batch, purpose, signal: until })
      return inLanes(texts, batchesOf(texts, service), ask, AbortSignal.any([signal, refused.signal]))
    },
  }
}

/** Nothing is left to the SDK's own reading of the environment, and it never holds the credential. */
function clientFor(sdk: Sdk, service: EmbeddingService, endpoint: URL, send: typeof fetch) {
  return new sdk.OpenAI({
    apiKey: 'set in exchange',
    adminAPIKey: null,
    organization: null,
    project: null,
    webhookSecret: null,
    baseURL: endpoint.origin + endpoint.pathname.replace(/\/$/, ''),
    defaultQuery: Object.fromEntries(endpoint.searchParams),
    maxRetries: retriesMax,
    timeout: Math.min(service.requestTimeoutMs ?? timeoutMsDefault, timeoutMsMax),
    logLevel: 'off',
    fetch: send,
  })
}

/** Tells of a dial that is refused at once: the SDK would try it again, and hide the reason. */
function unlessRefused(outbound: Outbound, tell: (refusal: EndpointRefused) => void): Outbound {
  return async (url, request) => {
    try {
      return await outbound(url, request)
    } catch (error) {
      const refusal = refusalIn(error)
      if (refusal) tell(refusal)
      throw error
    }
  }
}

/**
 * One request and its whole answer, so that the time-out and the retries cover the body too. Only our own headers
 * are sent: the SDK's describe this machine, and some come from the environment.
 */
function exchange(outbound: Outbound, endpoint: URL, credential: string | undefined): typeof fetch {
  return async (input, init) => {
    const url = new URL(String(input))
    if (url.origin !== endpoint.origin) throw new Error(`${url.origin} is not ${endpoint.origin}`)
    const answer = await outbound(url, {
      method: 'POST',
      headers: {
        accept: 'application/json',
        'content-type': 'application/json',
        'user-agent': 'workbase',
        ...(credential === undefined ? {} : { authorization: `Bearer ${credential}` }),
      },
      body: String(init?.body ?? ''),
      signal: init?.signal ?? null,
    })
    const body = await readWhole(answer, answerBytesMax)
    const headers = { 'content-type': 'application/json', ...retryHeaders(answer.headers) }
    const { status } = answer
    if (body.length === 0) return new Response(null, { status, headers })
    const told = status < 300 ? new Uint8Array(body) : withoutSecret(body.toString(), credential)
    return new Response(told, { status, headers })
  }
}

/** A refusal goes to the log as it came, and some providers repeat the key that they refuse. */
function withoutSecret(refusal: string, credential: string | undefined): string {
  return credential === undefined ? refusal : refusal.replaceAll(credential, '[redacted]')
}

/** The pause that a provider asks for, in the words that the SDK reads, within our bound. */
function retryHeaders(headers: OutboundAnswer['headers']): Record<string, string> {
  const waitMs = retryAfterMs(headers)
  if (waitMs === undefined) return {}
  return waitMs > retryAfterMsMax ? { 'x-should-retry': 'false' } : { 'retry-after-ms': String(waitMs) }
}

function* batchesOf(texts: readonly string[], service: EmbeddingService): Generator<Batch> {
  const byNumbers = Math.max(1, Math.floor(numbersPerRequestMax / service.embeddingDimension))
  const sizeMax = Math.min(service.maxBatchSize ?? batchSizeDefault, byNumbers)
  let start = 0
  let chars = 0
  for (const [at, text] of texts.entries()) {
    const isFull = at - start >= sizeMax || chars + text.length > textCharsPerRequestMax
    if (at > start && isFull) {
      yield { start, texts: texts.slice(start, at) }
      start = at
      chars = 0
    }
    chars += text.length
  }
  yield { start, texts: texts.slice(start) }
}

/** Work through the batches, a few at once; the first failure, or the caller, ends all of them. */
async function inLanes(
  texts: readonly string[],
  batches: Generator<Batch>,
  ask: (batch: Batch, until: AbortSignal) => Promise<Float32Array[]>,
  signal: AbortSignal,
): Promise<Float32Array[]> {
  const vectors: Float32Array[] = new Array(texts.length)
  const stop = new AbortController()
  const until = AbortSignal.any([signal, stop.signal])
  async function lane(): Promise<void> {
    for (const batch of batches)
      for (const [at, vector] of (await ask(batch, until)).entries()) vectors[batch.start + at] = vector
  }
  try {
    await Promise.race([Promise.all(Array.from({ length: requestsAtOnce }, lane)), rejectedWith(until)])
    return vectors
  } catch (error) {
    signal.throwIfAborted()
    throw error
  } finally {
    stop.abort()
  }
}

/** Rejects when the signal fires; the SDK's pause between two tries would hold the caller up. */
function rejectedWith(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) =>
    signal.addEventListener('abort', () => reject(signal.reason), { once: true }),
  )
}

interface Question extends Batch {
  purpose: Purpose
  signal: AbortSignal
}

async function vectorsOf(
  sdk: Sdk,
  client: InstanceType<Sdk['OpenAI']>,
  service: EmbeddingService,
  dialect: Dialect,
  { texts, purpose, signal }: Question,
): Promise<Float32Array[]> {
  const answer = await client
    .post<unknown>(dialect.path, { body: dialect.body(service, texts, purpose), signal })
    .catch((error: unknown) => {
      throw failureOf(sdk, service, error)
    })
  const vectors = dialect.vectors(answer)
  if (vectors === undefined) throw unavailable(service, 'sent an answer without vectors')
  if (vectors.length !== texts.length)
    throw unavailable(service, `sent ${vectors.length} vectors for ${texts.length} texts`)
  return vectors.map(numbers => vectorOf(numbers, service))
}

function vectorOf(numbers: unknown, service: EmbeddingService): Float32Array {
  if (!Array.isArray(numbers)) throw unavailable(service, 'sent an answer without vectors')
  if (numbers.length !== service.embeddingDimension)
    throw new WbError(
      'embedding_dimension_mismatch',
      `embedding service "${service.name}" declares ${service.embeddingDimension} dimensions, its model returned ${numbers.length}`,
    )
  const vector = Float32Array.from(numbers, number => (typeof number === 'number' ? number : Number.NaN))
  if (!vector.every(Number.isFinite)) throw unavailable(service, 'sent values that are not finite numbers')
  return vector
}

function failureOf(sdk: Sdk, service: EmbeddingService, cause: unknown): WbError {
  if (cause instanceof sdk.APIConnectionTimeoutError)
    return unavailable(service, 'did not answer in time', {}, cause)
  if (cause instanceof sdk.APIConnectionError) return unavailable(service, 'could not be reached', {}, cause)
  if (!(cause instanceof sdk.APIError) || cause.status === undefined)
    return unavailable(service, 'sent an answer that cannot be read', {}, cause)
  const providerStatus = Number(cause.status)
  const isRedirect = providerStatus >= 300 && providerStatus < 400
  const what = isRedirect ? 'with a redirect, which is not followed' : `with status ${providerStatus}`
  return unavailable(service, `answered ${what}`, { hint: hintOn(providerStatus), providerStatus }, cause)
}

function hintOn(status: number): string {
  if (status === 401 || status === 403)
    return 'The provider refuses the credential: check the key that credentialRef names.'
  if (status === 404) return 'Check modelName, endpointBaseUrl and endpointPath of the service.'
  if (status === 429) return 'The provider limits requests: wait, or ask it for a higher limit.'
  if (status >= 500) return 'The provider has trouble of its own: retry in a moment.'
  return 'Check modelName, embeddingDimension and endpointBaseUrl of the service.'
}
