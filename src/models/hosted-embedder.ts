import { approximateTokenCount } from '../base/approximate-token-count.ts'
import { WbError } from '../contract/errors.ts'
import type { EmbeddingService } from '../contract/services.ts'
import { type Dialect, dialects } from './dialects.ts'
import { type Embedder, type EmbeddingRetryPolicy, embedderFailure } from './embedder.ts'
import { type EndpointSettings, resolveCredential, resolveEndpoint } from './endpoint.ts'
import type { Outbound } from './outbound.ts'
import { openProviderClient, type ProviderCallSettings } from './provider/provider-client.ts'
import { type FailureKind, ProviderFailure } from './provider/provider-failure.ts'
import { ServicePace } from './request-paces.ts'

const batchSizeDefault = 64
/**
 * Maximum estimated number of tokens in a request. OpenAI accepts 300,000. This is less, because the estimate can be too low, and
 * because servers without a GPU must process a request before it times out.
 */
const tokensPerRequestMax = 50_000
/** Keeps each response below about 7 MB. Parsing a response blocks other requests. */
const valuesPerRequestMax = 1 << 18
/** Maximum size of a number in a response, with the characters around it. */
const bytesPerValueMax = 25
/** Maximum size of the other fields of a response. */
const otherBytesMax = 1_000_000
const concurrentRequestsMax = 2
const retriesMax: Record<EmbeddingRetryPolicy, number> = { request: 2, job: 6 }
const requestedPauseMsMax: Record<EmbeddingRetryPolicy, number> = { request: 20_000, job: 120_000 }
/** Refusals of a request with several texts after which the same texts are sent in smaller requests. */
const sizeRefusals: ReadonlySet<FailureKind | undefined> = new Set(['too_large', 'context_overflow'])

interface TextBatch {
  readonly start: number
  readonly texts: readonly string[]
}

/** Endpoint settings of an embedding service. */
export type EmbedderEndpoint = Omit<EndpointSettings, 'service' | 'createFailure' | 'path'> & {
  readonly service: EmbeddingService
}

/**
 * Returns an embedder that calls a provider with the API of OpenAI or Cohere.
 *
 * Sends each distinct text once. Retries a request up to two times after a timeout, a failed connection, or status 408, 409, 429
 * or 5xx, and up to six times for a job. Waits before each retry as long as the provider requests: up to 20 seconds, or two
 * minutes for a job. Resolves the endpoint and the credential for each call of `embed`.
 *
 * @param pace  shared by all embedders of the service
 * @see docs/services.md#hosted-embedding-models
 */
export function openHostedEmbedder(
  settings: EmbedderEndpoint,
  outbound: Outbound,
  pace = new ServicePace(),
): Embedder {
  const { service } = settings
  const dialect = dialects[settings.provider]
  return {
    dimension: service.embeddingDimension,
    async embed(texts, signal, purpose = 'document', { retryPolicy, onRequest, onVectors } = {}) {
      signal.throwIfAborted()
      if (texts.length === 0) return []
      const callSettings = { ...(await embeddingCallSettings(settings, retryPolicy)), pace }
      const distinct = [...new Set(texts)]
      const embedBatch = async (
        batch: readonly string[],
        batchSignal: AbortSignal,
      ): Promise<Float32Array[]> => {
        const values = batch.length * service.embeddingDimension
        const responseBytesMax = values * bytesPerValueMax + otherBytesMax
        const client = openProviderClient({ ...callSettings, responseBytesMax }, outbound)
        try {
          const body = dialect.body(service, batch, purpose)
          const send = () => {
            onRequest?.()
            return client.post(dialect.path, body, batchSignal)
          }
          // Do not delay queries by requests with documents, because a user waits for the answer.
          const response = await (purpose === 'query' ? send() : pace.limit(batchSignal, send))
          const vectors = vectorsIn(response, service, dialect, batch.length)
          onVectors?.(batch, vectors)
          return vectors
        } catch (error) {
          if (!(error instanceof ProviderFailure)) throw error
          if (!sizeRefusals.has(error.facts.kind))
            throw embedderFailure(service, error.reason, error.facts, error.cause)
          if (batch.length === 1) throw textTooLong(service, error)
        }
        const half = Math.ceil(batch.length / 2)
        const first = await embedBatch(batch.slice(0, half), batchSignal)
        return [...first, ...(await embedBatch(batch.slice(half), batchSignal))]
      }
      const vectors = await embedConcurrently(
        distinct,
        batchesOf(distinct, service, dialect),
        embedBatch,
        signal,
      )
      if (distinct.length === texts.length) return vectors
      const vectorOfText = new Map(distinct.map((text, at) => [text, vectors[at]!]))
      return texts.map(text => vectorOfText.get(text)!)
    },
  }
}

/**
 * Resolves the endpoint and the credential of a service.
 *
 * @throws embedding_unavailable  the service cannot be called
 */
export async function embeddingCallSettings(
  settings: EmbedderEndpoint,
  retryPolicy: EmbeddingRetryPolicy = 'request',
): Promise<ProviderCallSettings> {
  const { service, provider } = settings
  const createFailure: EndpointSettings['createFailure'] = (_source, ...args) =>
    embedderFailure(service, ...args)
  const callSettings = { ...settings, createFailure, path: dialects[provider].path }
  const endpoint = resolveEndpoint(callSettings)
  const credential = await resolveCredential(callSettings, endpoint)
  return {
    endpoint,
    credential,
    timeoutMs: service.requestTimeoutMs,
    retriesMax: retriesMax[retryPolicy],
    requestedPauseMsMax: requestedPauseMsMax[retryPolicy],
  }
}

function textTooLong(service: EmbeddingService, { facts, cause }: ProviderFailure): WbError {
  const hint = 'Use a chunking service with smaller chunks, or a model that accepts longer texts.'
  return embedderFailure(service, 'rejected a text that is too long for its model', { ...facts, hint }, cause)
}

/** Returns the maximum total number of texts in concurrent requests. */
export function concurrentTextsMax(service: EmbeddingService): number {
  return concurrentRequestsMax * batchSizeOf(service)
}

function batchSizeOf({ embeddingDimension, maxBatchSize }: EmbeddingService): number {
  const sizeMaxByValues = Math.max(1, Math.floor(valuesPerRequestMax / embeddingDimension))
  return Math.min(maxBatchSize ?? batchSizeDefault, sizeMaxByValues)
}

function* batchesOf(
  texts: readonly string[],
  service: EmbeddingService,
  dialect: Dialect,
): Generator<TextBatch> {
  const sizeMax = Math.min(batchSizeOf(service), dialect.textsMax)
  let start = 0
  let tokens = 0
  for (const [at, text] of texts.entries()) {
    const textTokens = approximateTokenCount(text)
    const isFull = at - start >= sizeMax || tokens + textTokens > tokensPerRequestMax
    if (at > start && isFull) {
      yield { start, texts: texts.slice(start, at) }
      start = at
      tokens = 0
    }
    tokens += textTokens
  }
  yield { start, texts: texts.slice(start) }
}

/**
 * Embeds batches with a few concurrent requests. The first failure, or the caller's signal, cancels all requests.
 */
async function embedConcurrently(
  texts: readonly string[],
  batches: Generator<TextBatch>,
  embedBatch: (batch: readonly string[], batchSignal: AbortSignal) => Promise<Float32Array[]>,
  signal: AbortSignal,
): Promise<Float32Array[]> {
  const vectors: Float32Array[] = new Array(texts.length)
  const stop = new AbortController()
  const batchSignal = AbortSignal.any([signal, stop.signal])
  async function worker(): Promise<void> {
    for (const batch of batches)
      for (const [at, vector] of (await embedBatch(batch.texts, batchSignal)).entries())
        vectors[batch.start + at] = vector
  }
  try {
    await Promise.all(Array.from({ length: concurrentRequestsMax }, worker))
    return vectors
  } catch (error) {
    signal.throwIfAborted()
    throw error
  } finally {
    stop.abort()
  }
}

function vectorsIn(
  response: unknown,
  service: EmbeddingService,
  dialect: Dialect,
  count: number,
): Float32Array[] {
  const vectors = dialect.vectors(response)
  if (vectors === undefined) throw embedderFailure(service, 'sent a response without vectors')
  if (vectors.length !== count)
    throw embedderFailure(service, `sent ${vectors.length} vectors for ${count} texts`)
  return vectors.map(values => vectorOf(values, service))
}

function vectorOf(values: unknown, service: EmbeddingService): Float32Array {
  if (!Array.isArray(values)) throw embedderFailure(service, 'sent a response without vectors')
  if (values.length !== service.embeddingDimension)
    throw new WbError(
      'embedding_dimension_mismatch',
      `embedding service "${service.name}" declares ${service.embeddingDimension} dimensions, but its model returned ${values.length}`,
    )
  const vector = Float32Array.from(values, number => (typeof number === 'number' ? number : Number.NaN))
  if (!vector.every(Number.isFinite))
    throw embedderFailure(service, 'sent vectors with values that are not finite numbers')
  return vector
}
