import { LRUCache } from 'lru-cache'
import type { Clock } from '../../base/clock.ts'
import { withTimeout } from '../../base/deadline.ts'
import { readBody } from '../../base/read-body.ts'
import { providers } from '../../contract/providers.ts'
import { requestModels } from '../model-catalogue.ts'
import type { Outbound, OutboundResponse } from '../outbound.ts'
import { fieldOfUntrusted } from '../provider/provider-failure.ts'

/** Properties of a model in its provider's list; null if not listed. */
export interface ModelDetail {
  /** Maximum tokens of the prompt and the answer together. */
  readonly contextTokens: number | null
  readonly supportsTools: boolean | null
  readonly supportsImages: boolean | null
}

/** A model and its endpoint. */
export interface ModelLocation {
  readonly provider: string
  readonly modelName: string
  readonly endpoint: URL
}

const modelsMax = 500
const requestTimeoutMs = 5_000
const answerBytesMax = 4_000_000
const keptMs = 3_600_000
/** Largest context window of a model that Ollama loads without configuration. */
const ollamaWindowTokens = 8_192

/**
 * Details of models, requested from their providers: from Ollama for each model, from OpenRouter for all
 * models at once. Requests run in the background, without a credential. Details are stored for an hour, and
 * are missing if the provider does not answer.
 */
export class ModelDetails {
  readonly #known = new LRUCache<
    string,
    { readonly detail: ModelDetail | undefined; readonly untilMs: number }
  >({ max: modelsMax })

  constructor(private readonly parts: { readonly clock: Clock; readonly outbound: Outbound }) {}

  /** Returns the details that are known now. */
  get(place: ModelLocation): ModelDetail | undefined {
    return this.#known.get(keyOf(place))?.detail
  }

  /** Requests the details in the background, unless they are known. */
  request(place: ModelLocation): void {
    const { clock, outbound } = this.parts
    const read = readerOf(place, outbound)
    const key = keyOf(place)
    if (!read || (this.#known.get(key)?.untilMs ?? 0) > clock.now()) return
    // Keeps the old details and prevents further requests until the response arrives.
    this.#set(key, this.get(place))
    withTimeout(clock, requestTimeoutMs, read).then(
      detail => this.#set(key, detail),
      () => {},
    )
  }

  #set(key: string, detail: ModelDetail | undefined): void {
    this.#known.set(key, { detail, untilMs: this.parts.clock.now() + keptMs })
  }
}

function keyOf({ endpoint, modelName }: ModelLocation): string {
  return JSON.stringify([endpoint.href, modelName])
}

/** Returns a function that reads the details of a model; undefined for a provider without any. */
function readerOf(
  { provider, endpoint, modelName }: ModelLocation,
  outbound: Outbound,
): ((signal: AbortSignal) => Promise<ModelDetail | undefined>) | undefined {
  if (provider === 'ollama')
    return async signal =>
      ollamaDetail(await jsonIn(await requestOllamaDetail(endpoint, modelName, outbound, signal)))
  if (provider !== 'openrouter' || endpoint.host !== new URL(providers.openrouter.baseUrl).host)
    return undefined
  return async signal =>
    openrouterDetail(await jsonIn(await requestModels(outbound, endpoint, signal)), modelName)
}

/** @see https://docs.ollama.com/api-reference/show-model-details */
function requestOllamaDetail(
  endpoint: URL,
  model: string,
  outbound: Outbound,
  signal: AbortSignal,
): Promise<OutboundResponse> {
  const url = new URL(endpoint)
  url.pathname = `${url.pathname.replace(/\/(?:v1\/?)?$/, '')}/api/show`
  const headers = { accept: 'application/json', 'content-type': 'application/json', 'user-agent': 'workbase' }
  return outbound(url, { method: 'POST', headers, body: JSON.stringify({ model }), signal })
}

async function jsonIn({ status, body }: OutboundResponse): Promise<unknown> {
  const text = (await readBody(body, answerBytesMax)).toString()
  if (status !== 200) throw new Error(`status ${status}`)
  return JSON.parse(text) as unknown
}

function ollamaDetail(answer: unknown): ModelDetail {
  const capabilities = fieldOfUntrusted(answer, 'capabilities')
  const info = fieldOfUntrusted(answer, 'model_info')
  const architecture = String(fieldOfUntrusted(info, 'general.architecture') ?? '')
  const [, set] = /^num_ctx\s+(\d+)\s*$/m.exec(String(fieldOfUntrusted(answer, 'parameters') ?? '')) ?? []
  const trained = positiveInteger(fieldOfUntrusted(info, `${architecture}.context_length`))
  const isSmall = trained !== null && trained < ollamaWindowTokens
  return {
    contextTokens: positiveInteger(Number(set)) ?? (isSmall ? trained : null),
    supportsTools: listed(capabilities, 'tools'),
    supportsImages: listed(capabilities, 'vision'),
  }
}

/** @see https://openrouter.ai/docs/api-reference/list-available-models */
function openrouterDetail(answer: unknown, modelName: string): ModelDetail | undefined {
  const models = fieldOfUntrusted(answer, 'data')
  const model = Array.isArray(models)
    ? models.find(one => fieldOfUntrusted(one, 'id') === modelName)
    : undefined
  if (model === undefined) return undefined
  return {
    contextTokens: positiveInteger(fieldOfUntrusted(model, 'context_length')),
    supportsTools: listed(fieldOfUntrusted(model, 'supported_parameters'), 'tools'),
    supportsImages: listed(
      fieldOfUntrusted(fieldOfUntrusted(model, 'architecture'), 'input_modalities'),
      'image',
    ),
  }
}

/** Returns null if there is no list. */
function listed(list: unknown, name: string): boolean | null {
  return Array.isArray(list) ? list.includes(name) : null
}

function positiveInteger(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : null
}
