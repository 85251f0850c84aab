import pMap from 'p-map'
import { TimedOut, withTimeout } from '../base/deadline.ts'
import {
  chatProviders,
  isChatProvider,
  isRerankProtocol,
  type RerankProtocol,
  rerankProtocols,
} from '../contract/providers.ts'
import type { RerankingService } from '../contract/services.ts'
import { type ChatDependencies, openChat } from './chat/open-chat.ts'
import {
  type EndpointSettings,
  type ModelDependencies,
  resolveCredential,
  resolveEndpoint,
} from './endpoint.ts'
import { scoreByChatModel } from './llm-reranker.ts'
import { openProviderClient, type ProviderCallSettings } from './provider/provider-client.ts'
import { fieldOfUntrusted, ProviderFailure, providerTimeout } from './provider/provider-failure.ts'
import type { RerankerPauses } from './reranker-pauses.ts'

/** Path of requests below the base URL, in both protocols. */
const path = '/rerank'
/** Maximum time for all responses to a question if the service does not set one. A search waits for it. */
const timeoutMsDefault = 2_000
const timeoutMsMax = 10_000
/** Maximum size of a response. Scores of 1,000 passages take less than 100 KB. */
const responseBytesMax = 1_000_000
const concurrentRequestsMax = 4

interface RerankerDependencies extends Omit<ChatDependencies, 'retriesMax'> {
  readonly pauses: RerankerPauses
}

/** Scores passages by their relevance to a question. */
export interface Reranker {
  /** Number of passages to score, unless the service sets `maxCandidates`. */
  readonly candidatesDefault: number
  /** Maximum number of UTF-16 units of a passage. */
  readonly passageCharsMax: number
  /**
   * Returns one finite score per passage, in the order of the passages. Higher scores are better.
   *
   * @param passages  texts that the provider receives; at least one
   * @throws ProviderFailure  the service cannot be called, does not answer in time, or its answer is invalid
   * @throws the reason of the signal
   */
  score(question: string, passages: readonly string[], signal: AbortSignal): Promise<number[]>
}

/** Request and response format of a reranking protocol. */
interface RerankDialect {
  body(model: string, question: string, passages: readonly string[]): object
  /** Returns the entries of a response, without checking them. */
  entries(response: unknown): unknown
  readonly scoreField: string
  /** Maximum number of passages per request. */
  readonly passagesMax: number
}

const dialects: Record<RerankProtocol, RerankDialect> = {
  /** @see https://docs.cohere.com/reference/rerank and https://docs.vllm.ai (the API is also that of Jina) */
  cohere: {
    body: (model, query, documents) => ({ model, query, documents, top_n: documents.length }),
    entries: response => fieldOfUntrusted(response, 'results'),
    scoreField: 'relevance_score',
    passagesMax: 1_000,
  },
  /** @see https://huggingface.github.io/text-embeddings-inference */
  tei: {
    body: (_model, query, texts) => ({ query, texts, truncate: true }),
    entries: response => response,
    scoreField: 'score',
    passagesMax: 32,
  },
}

/**
 * Opens a reranker that calls the provider of a service, unless the service is paused. Resolves the endpoint and the
 * credential for each call. It does not retry, because a search waits for it.
 *
 * @see docs/services.md#rerankers
 */
export function openReranker(service: RerankingService, deps: RerankerDependencies): Reranker {
  const isChat = isChatProvider(service.provider)
  const timeoutMs = Math.min(service.requestTimeoutMs ?? timeoutMsDefault, timeoutMsMax)
  return {
    // A chat model reads all passages in one request, and its time grows with their number and length.
    candidatesDefault: isChat ? 20 : 50,
    passageCharsMax: isChat ? 2_000 : 8_000,
    async score(question, passages, signal) {
      const score = isChat ? scoreByChatModel : scoreByProtocol
      const scoreAll = (scoreSignal: AbortSignal) => score(service, { question, passages }, scoreSignal, deps)
      const cancel = deps.pauses.start(service)
      try {
        const scores = await withTimeout(deps.clock, timeoutMs, scoreAll, signal)
        deps.pauses.recordResponse(service)
        return scores
      } catch (error) {
        if (signal.aborted) cancel()
        signal.throwIfAborted()
        const failure = error instanceof TimedOut ? providerTimeout(error) : error
        const hasTimedOut = failure instanceof ProviderFailure && failure.cause instanceof TimedOut
        if (hasTimedOut) deps.pauses.recordTimeout(service)
        else deps.pauses.recordResponse(service)
        throw failure
      }
    },
  }
}

/**
 * Resolves the endpoint and the credential of a service, without sending a request. Checks that it is not paused.
 *
 * @throws ProviderFailure  the service cannot be called
 * @throws llm_credential_missing
 */
export async function checkReranker(service: RerankingService, deps: RerankerDependencies): Promise<void> {
  if (isChatProvider(service.provider)) await openChat(service, { ...deps, retriesMax: 0 }).check()
  else await rerankCall(service, deps)
  const failure = deps.pauses.failure(service)
  if (failure) throw failure
}

async function scoreByProtocol(
  service: RerankingService,
  { question, passages }: { question: string; passages: readonly string[] },
  signal: AbortSignal,
  deps: ModelDependencies,
): Promise<number[]> {
  const { dialect, settings } = await rerankCall(service, deps)
  const client = openProviderClient(settings, deps.outbound)
  const batches = batchesOf(passages, Math.min(service.maxBatchSize ?? Infinity, dialect.passagesMax))
  const scoreBatch = async (batch: readonly string[]) => {
    const body = dialect.body(service.modelName, question, batch)
    return scoresIn(await client.post(path, body, signal), dialect, batch.length)
  }
  return (await pMap(batches, scoreBatch, { concurrency: concurrentRequestsMax, signal })).flat()
}

async function rerankCall(
  service: RerankingService,
  { environment, isReleased }: ModelDependencies,
): Promise<{ dialect: RerankDialect; settings: ProviderCallSettings }> {
  const protocol = service.provider
  if (!isRerankProtocol(protocol))
    throw new ProviderFailure('has a provider that this runtime cannot call', {
      hint: `Use one of the providers ${[...rerankProtocols, ...chatProviders].join(', ')}. For your own server, set endpointBaseUrl.`,
    })
  if (protocol === 'tei' && service.endpointBaseUrl === null)
    throw new ProviderFailure('has no address', { hint: 'Set endpointBaseUrl of the service.' })
  const createFailure: EndpointSettings['createFailure'] = (_source, reason, { hint } = {}, cause) =>
    new ProviderFailure(reason, { ...(hint !== undefined && { hint }) }, {}, cause)
  // The default address is not used for `tei`, and its own servers need no key.
  const target = { service, provider: 'cohere', environment, isReleased, createFailure, path } as const
  const endpoint = resolveEndpoint(target)
  const credential = await resolveCredential(target, endpoint)
  // The time limit of all requests of a search applies, which is shorter.
  const settings = { endpoint, credential, timeoutMs: null, retriesMax: 0, responseBytesMax }
  return { dialect: dialects[protocol], settings }
}

function batchesOf(passages: readonly string[], size: number): (readonly string[])[] {
  const count = Math.ceil(passages.length / size)
  return Array.from({ length: count }, (_, at) => passages.slice(at * size, (at + 1) * size))
}

/** Returns the scores of a response. Every passage must have exactly one. */
function scoresIn(response: unknown, { entries, scoreField }: RerankDialect, count: number): number[] {
  const list = entries(response)
  if (!Array.isArray(list) || list.length !== count)
    throw new ProviderFailure('sent a response without a score for each passage')
  const scores = new Map<number, number>()
  for (const entry of list) {
    const index = fieldOfUntrusted(entry, 'index')
    const score = fieldOfUntrusted(entry, scoreField)
    if (typeof index !== 'number' || !Number.isInteger(index) || index < 0 || index >= count)
      throw new ProviderFailure('sent a score for a passage that it did not receive')
    if (typeof score !== 'number' || !Number.isFinite(score))
      throw new ProviderFailure('sent a score that is not a finite number')
    scores.set(index, score)
  }
  if (scores.size !== count) throw new ProviderFailure('sent several scores for one passage')
  return Array.from({ length: count }, (_, index) => scores.get(index)!)
}
