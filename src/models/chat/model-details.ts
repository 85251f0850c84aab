import { LRUCache } from 'lru-cache'
import type { Clock } from '../../base/clock.ts'
import { withTimeout } from '../../base/deadline.ts'
import { readBody } from '../../base/read-body.ts'
import { providers } from '../../contract/providers.ts'
import { requestModels } from '../model-catalog.ts'
import type { Outbound, OutboundResponse } from '../outbound.ts'
import { fieldOfUntrusted } from '../provider/provider-failure.ts'

/** Properties of a model that its provider lists. Null means that a property is not listed. */
export interface ModelDetail {
  /** Maximum total number of tokens in the prompt and the answer. */
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
const responseBytesMax = 4_000_000
const detailTtlMs = 3_600_000
/** Maximum context window that Ollama uses for a model whose context window is not configured. */
const ollamaWindowTokens = 8_192

/**
 * Requests details of models from Ollama and OpenRouter, and requests them again after an hour. Requests run in the
 * background and contain no credential. If the provider does not respond, the details are missing.
 */
export class ModelDetails {
  readonly #details = new LRUCache<
    string,
    { readonly detail: ModelDetail | undefined; readonly expiresAtMs: number }
  >({ max: modelsMax })

  constructor(private readonly deps: { readonly clock: Clock; readonly outbound: Outbound }) {}

  /** Returns the stored details of a model; undefined if there are none. */
  get(location: ModelLocation): ModelDetail | undefined {
    return this.#details.get(keyOf(location))?.detail
  }

  /** Requests the details of a model in the background, unless they were requested less than an hour ago. */
  request(location: ModelLocation): void {
    const { clock, outbound } = this.deps
    const request = detailReader(location, outbound)
    const key = keyOf(location)
    if (!request || (this.#details.get(key)?.expiresAtMs ?? 0) > clock.now()) return
    // Keeps the old details until the response arrives, and prevents more requests.
    this.#set(key, this.get(location))
    withTimeout(clock, requestTimeoutMs, request).then(
      detail => this.#set(key, detail),
      () => {},
    )
  }

  #set(key: string, detail: ModelDetail | undefined): void {
    this.#details.set(key, { detail, expiresAtMs: this.deps.clock.now() + detailTtlMs })
  }
}

function keyOf({ endpoint, modelName }: ModelLocation): string {
  return JSON.stringify([endpoint.href, modelName])
}

/** Returns a function that requests the details of a model; undefined if the provider does not offer details. */
function detailReader(
  { provider, endpoint, modelName }: ModelLocation,
  outbound: Outbound,
): ((signal: AbortSignal) => Promise<ModelDetail | undefined>) | undefined {
  if (provider === 'ollama')
    return async signal =>
      ollamaDetail(await readJson(await requestOllamaDetail(endpoint, modelName, outbound, signal)))
  if (provider !== 'openrouter' || endpoint.host !== new URL(providers.openrouter.baseUrl).host)
    return undefined
  return async signal =>
    openrouterDetail(await readJson(await requestModels(outbound, endpoint, signal)), modelName)
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

async function readJson({ status, body }: OutboundResponse): Promise<unknown> {
  const text = (await readBody(body, responseBytesMax)).toString()
  if (status !== 200) throw new Error(`status ${status}`)
  return JSON.parse(text) as unknown
}

function ollamaDetail(response: unknown): ModelDetail {
  const capabilities = fieldOfUntrusted(response, 'capabilities')
  const info = fieldOfUntrusted(response, 'model_info')
  const architecture = String(fieldOfUntrusted(info, 'general.architecture') ?? '')
  const [, configuredWindow] =
    /^num_ctx\s+(\d+)\s*$/m.exec(String(fieldOfUntrusted(response, 'parameters') ?? '')) ?? []
  const trainedWindow = positiveInteger(fieldOfUntrusted(info, `${architecture}.context_length`))
  const isSmall = trainedWindow !== null && trainedWindow < ollamaWindowTokens
  return {
    contextTokens: positiveInteger(Number(configuredWindow)) ?? (isSmall ? trainedWindow : null),
    supportsTools: listIncludes(capabilities, 'tools'),
    supportsImages: listIncludes(capabilities, 'vision'),
  }
}

/** @see https://openrouter.ai/docs/api-reference/list-available-models */
function openrouterDetail(response: unknown, modelName: string): ModelDetail | undefined {
  const models = fieldOfUntrusted(response, 'data')
  const model = Array.isArray(models)
    ? models.find(entry => fieldOfUntrusted(entry, 'id') === modelName)
    : undefined
  if (model === undefined) return undefined
  return {
    contextTokens: positiveInteger(fieldOfUntrusted(model, 'context_length')),
    supportsTools: listIncludes(fieldOfUntrusted(model, 'supported_parameters'), 'tools'),
    supportsImages: listIncludes(
      fieldOfUntrusted(fieldOfUntrusted(model, 'architecture'), 'input_modalities'),
      'image',
    ),
  }
}

/** Returns true if a list contains a name; null if it is not a list. */
function listIncludes(list: unknown, name: string): boolean | null {
  return Array.isArray(list) ? list.includes(name) : null
}

function positiveInteger(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value > 0 ? value : null
}
