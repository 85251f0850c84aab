import type { Clock } from '../base/clock.ts'
import { withTimeout } from '../base/deadline.ts'
import { readBody } from '../base/read-body.ts'
import type { ConfigEnvironment } from '../config/config-environment.ts'
import type { LlmModel, LlmModels } from '../contract/models.ts'
import { type ChatProvider, providers } from '../contract/providers.ts'
import { defaultBaseUrl, parseEndpoint } from './endpoint.ts'
import type { Outbound, OutboundResponse } from './outbound.ts'

const requestTimeoutMs = 5_000
const responseBytesMax = 4_000_000
/** Maximum number of models that are returned from a provider's list. */
const modelsMax = 2_000
const idCharsMax = 256

/** IDs of recommended models, in display order. All are small, fast and able to call tools. */
const recommended: readonly string[] = [
  'openai/gpt-4o-mini',
  'openai/gpt-4o',
  'anthropic/claude-3.5-haiku',
  'anthropic/claude-3.7-sonnet',
  'google/gemini-2.0-flash-001',
]

/** Models that are returned when the provider's list is unavailable. */
const fallbackModels: Record<ChatProvider, readonly LlmModel[]> = {
  openrouter: recommended.map(id => model(id, true, true)),
  openai: ['gpt-4o-mini', 'gpt-4o', 'gpt-4.1-mini', 'gpt-4.1'].map((id, at) => model(id, true, at < 2)),
  ollama: ['llama3.1', 'qwen2.5', 'mistral'].map((id, at) => model(id, null, at === 0)),
}

function model(id: string, supportsTools: boolean | null, isRecommended: boolean): LlmModel {
  return { id, name: id, supportsTools, recommended: isRecommended }
}

/** Lists the models that LLM services can use, as their providers list them. */
export class ModelCatalog {
  constructor(private readonly deps: { environment: ConfigEnvironment; outbound: Outbound; clock: Clock }) {}

  /**
   * Returns the provider's list, or a built-in list if the provider's list is unavailable. Never requests the list of
   * OpenAI, because that requires a key.
   *
   * @param baseUrl  address of Ollama; the endpoint guard checks it when a connection is opened
   */
  async list(provider: ChatProvider, baseUrl: string | undefined, signal: AbortSignal): Promise<LlmModels> {
    const providerModels = provider === 'openai' ? [] : await this.request(provider, baseUrl, signal)
    return providerModels.length > 0
      ? { provider, source: 'live', models: providerModels }
      : { provider, source: 'fallback', models: [...fallbackModels[provider]] }
  }

  private async request(provider: 'openrouter' | 'ollama', baseUrl: string | undefined, signal: AbortSignal) {
    const { environment, outbound, clock } = this.deps
    const base =
      provider === 'ollama' ? (baseUrl ?? defaultBaseUrl(provider, environment)) : providers[provider].baseUrl
    try {
      const endpoint = parseEndpoint(base, provider, '/models')
      const request = async (requestSignal: AbortSignal) => {
        const { status, body } = await requestModels(outbound, endpoint, requestSignal)
        return { status, text: (await readBody(body, responseBytesMax)).toString() }
      }
      const { status, text } = await withTimeout(clock, requestTimeoutMs, request, signal)
      return status === 200 ? modelsIn(JSON.parse(text), provider) : []
    } catch {
      signal.throwIfAborted()
      return []
    }
  }
}

/** Requests a provider's list of models, without a credential. */
export function requestModels(
  outbound: Outbound,
  endpoint: URL,
  signal: AbortSignal,
): Promise<OutboundResponse> {
  const url = new URL(endpoint)
  url.pathname = `${url.pathname.replace(/\/$/, '')}/models`
  const headers = { accept: 'application/json', 'user-agent': 'workbase' }
  return outbound(url, { method: 'GET', headers, body: null, signal })
}

interface ListedModel {
  readonly id: string
  readonly name?: unknown
  readonly supported_parameters?: unknown
}

/** @see https://openrouter.ai/docs/api-reference/list-available-models */
function modelsIn(response: { data?: unknown }, provider: 'openrouter' | 'ollama'): LlmModel[] {
  const listed = (Array.isArray(response.data) ? response.data : []).filter(isListed)
  const models = listed
    .filter(entry => provider === 'ollama' || callsTools(entry))
    .map(({ id, name }) => ({
      id,
      name: typeof name === 'string' && name !== '' ? name.slice(0, idCharsMax) : id,
      supportsTools: provider === 'ollama' ? null : true,
      recommended: recommended.includes(id),
    }))
  return models.sort(compareModels).slice(0, modelsMax)
}

function isListed(entry: unknown): entry is ListedModel {
  const id = (entry as Partial<ListedModel> | null)?.id
  return typeof id === 'string' && id !== '' && id.length <= idCharsMax
}

function callsTools({ supported_parameters: parameters }: ListedModel): boolean {
  return Array.isArray(parameters) && parameters.includes('tools')
}

/** Compares models for sorting: recommended models come first, then by ID. */
function compareModels(a: LlmModel, b: LlmModel): number {
  return Number(b.recommended) - Number(a.recommended) || (a.id < b.id ? -1 : 1)
}
