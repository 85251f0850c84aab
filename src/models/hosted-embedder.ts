import { WbError } from '../contract/errors.ts'
import type { EmbeddingService } from '../contract/services.ts'
import { type Dialect, dialects } from './dialects.ts'
import { type Embedder, embedderFailure } from './embedder.ts'
import { type EndpointSettings, resolveCredential, resolveEndpoint } from './endpoint.ts'
import type { Outbound } from './outbound.ts'
import { openProviderClient, type ProviderCallSettings } from './provider/provider-client.ts'
import { ProviderFailure } from './provider/provider-failure.ts'

const batchSizeDefault = 64
/** Keeps each request below the providers' limit of 300,000 tokens, for texts in any script. */
const textCharsPerRequestMax = 200_000
/** Keeps each response below about 7 MB. Parsing a response blocks other requests. */
const valuesPerRequestMax = 1 << 18
/** Maximum size of a number in a response, with the characters around it. */
const bytesPerValueMax = 25
/** Maximum size of the other fields of a response. */
const otherBytesMax = 1_000_000
const concurrentRequestsMax = 2
const retriesMax = 2

type TextBatch = { start: number; texts: readonly string[] }

/** Endpoint settings of an embedding service. */
export type EmbedderEndpoint = Omit<EndpointSettings, 'service' | 'createFailure' | 'path'> & {
  readonly service: EmbeddingService
}

/**
 * Returns an embedder that calls a provider with the API of OpenAI or Cohere.
 *
 * Retries a request up to two times after a timeout, a failed connection, or status 408, 409, 429 or 5xx. Waits before
 * each retry as long as the provider requests. Resolves the endpoint and the credential for each call of `embed`.
 *
 * @see docs/configuration.md#embedding-providers
 */
export function openHostedEmbedder(settings: EmbedderEndpoint, outbound: Outbound): Embedder {
  const { service } = settings
  const dialect = dialects[settings.provider]
  return {
    dimension: service.embeddingDimension,
    async embed(texts, signal, purpose = 'document', onRequest = () => {}) {
      signal.throwIfAborted()
      if (texts.length === 0) return []
      const callSettings = await embeddingCallSettings(settings)
      const embedBatch = async (batch: TextBatch, batchSignal: AbortSignal) => {
        const values = batch.texts.length * service.embeddingDimension
        const responseBytesMax = values * bytesPerValueMax + otherBytesMax
        const client = openProviderClient({ ...callSettings, responseBytesMax }, outbound)
        const body = dialect.body(service, batch.texts, purpose)
        onRequest()
        const response = await client.post(dialect.path, body, batchSignal).catch(error => {
          if (!(error instanceof ProviderFailure)) throw error
          throw embedderFailure(service, error.reason, error.facts, error.cause)
        })
        return vectorsIn(response, service, dialect, batch.texts.length)
      }
      return embedConcurrently(texts, batchesOf(texts, service, dialect), embedBatch, signal)
    },
  }
}

/**
 * Resolves the endpoint and the credential of a service.
 *
 * @throws embedding_unavailable  the service cannot be called
 */
export async function embeddingCallSettings(settings: EmbedderEndpoint): Promise<ProviderCallSettings> {
  const { service, provider } = settings
  const createFailure: EndpointSettings['createFailure'] = (_source, ...args) =>
    embedderFailure(service, ...args)
  const callSettings = { ...settings, createFailure, path: dialects[provider].path }
  const endpoint = resolveEndpoint(callSettings)
  const credential = await resolveCredential(callSettings, endpoint)
  return { endpoint, credential, timeoutMs: service.requestTimeoutMs, retriesMax }
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

/**
 * Embeds batches with a few concurrent requests. The first failure, or the caller's signal, cancels all requests.
 */
async function embedConcurrently(
  texts: readonly string[],
  batches: Generator<TextBatch>,
  embedBatch: (batch: TextBatch, batchSignal: AbortSignal) => Promise<Float32Array[]>,
  signal: AbortSignal,
): Promise<Float32Array[]> {
  const vectors: Float32Array[] = new Array(texts.length)
  const stop = new AbortController()
  const batchSignal = AbortSignal.any([signal, stop.signal])
  async function worker(): Promise<void> {
    for (const batch of batches)
      for (const [at, vector] of (await embedBatch(batch, batchSignal)).entries())
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
