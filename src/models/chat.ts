import { WbError } from '../contract/errors.ts'
import { type ChatProvider, isChatProvider } from '../contract/providers.ts'
import {
  credentialFor,
  type Dialling,
  endpointAt,
  endpointOf,
  type FailureFacts,
  type ModelParts,
  type ModelService,
  secretFor,
  usualBaseUrl,
} from './endpoint.ts'
import { field, openClient, type ProviderClient, ProviderFailure, toldIn } from './provider-client.ts'

export interface ChatMessage {
  readonly role: 'system' | 'user' | 'assistant'
  readonly content: string
}

export interface CompletionSettings {
  readonly maxTokens: number
  readonly signal: AbortSignal
}

/** What a model said. */
export interface Completion {
  /** Empty where its tokens ran out before it said anything. */
  readonly text: string
  readonly finishReason: 'stop' | 'length' | 'tool_calls'
  /** Tokens of question and answer together; null where the provider does not tell. */
  readonly tokenCount: number | null
}

/** A model that answers messages. */
export interface Chat {
  /**
   * One answer, whole.
   *
   * @throws llm_credential_missing  the credential is missing, not released for the host, or does not resolve
   * @throws llm_model_not_chat, llm_model_unavailable  the provider says so
   * @throws ProviderFailure         whatever else went wrong
   */
  complete(messages: readonly ChatMessage[], settings: CompletionSettings): Promise<Completion>
}

/** What the configuration says of chats. */
export interface ChatConfig {
  readonly provider: ChatProvider
  /** The runtime's own credential. It stands in for that of a service, at the runtime's own endpoint alone. */
  readonly tokenRef: string
  readonly baseUrl: string | null
  readonly allowDataCollection: boolean
}

export interface ChatParts extends ModelParts {
  readonly chat: ChatConfig
  /** How often a request that a provider could not answer is repeated. */
  readonly retriesMax: number
}

const path = '/chat/completions'

/**
 * The chat of a service. Nothing is dialled or resolved before its first call.
 *
 * @throws llm_provider_unsupported  the runtime cannot call this provider
 * @see https://platform.openai.com/docs/api-reference/chat/create
 */
export function openChat(service: ModelService, parts: ChatParts): Chat {
  const { provider } = service
  if (!isChatProvider(provider))
    throw new WbError(
      'llm_provider_unsupported',
      `${spoken(service)} has a provider that this runtime cannot call`,
    )
  const dialling: Dialling = { ...parts, service, provider, path, failed: failureOf(service) }
  return {
    async complete(messages, { maxTokens, signal }) {
      const client = await clientFor(dialling, provider, parts)
      const body = { ...bodyFor(service, provider, parts.chat), max_tokens: maxTokens, messages }
      return completionIn(await asked(client, body, service, signal), service)
    },
  }
}

async function clientFor(dialling: Dialling, provider: ChatProvider, parts: ChatParts) {
  const endpoint = endpointOf(dialling)
  const credential = await credentialAt(dialling, endpoint, parts.chat)
  const headers = provider === 'openrouter' ? attribution : {}
  const timeoutMs = dialling.service.requestTimeoutMs
  return openClient(
    { endpoint, credential, timeoutMs, retriesMax: parts.retriesMax, headers },
    parts.outbound,
  )
}

/** @see https://openrouter.ai/docs/app-attribution */
const attribution = { 'http-referer': 'http://localhost', 'x-title': 'Workbase' }

/**
 * The service's own credential; the runtime's own for a service that names none and is where the runtime's own chat
 * is, so that nobody collects it with an address of their own.
 */
async function credentialAt(
  dialling: Dialling,
  endpoint: URL,
  chat: ChatConfig,
): Promise<string | undefined> {
  const { service, provider, environment } = dialling
  const isOwn =
    service.credentialRef === null &&
    provider === chat.provider &&
    provider !== 'ollama' &&
    endpoint.origin === endpointAt(chat.baseUrl ?? usualBaseUrl(provider, environment), provider, path).origin
  return isOwn ? secretFor(dialling, chat.tokenRef, endpoint) : credentialFor(dialling, endpoint)
}

function bodyFor({ modelName }: ModelService, provider: ChatProvider, { allowDataCollection }: ChatConfig) {
  const isPrivate = provider === 'openrouter' && !allowDataCollection
  return { model: modelName, ...(isPrivate ? { provider: { data_collection: 'deny' } } : {}) }
}

async function asked(client: ProviderClient, body: object, service: ModelService, signal: AbortSignal) {
  try {
    const answer = await client.post(path, body, signal)
    const error = field(answer, 'error')
    if (error) throw new ProviderFailure('answered with an error', {}, toldIn(error))
    return answer
  } catch (error) {
    signal.throwIfAborted()
    throw error instanceof ProviderFailure ? verdictOn(error, service) : error
  }
}

/** Words by which providers say that a model is of another kind, or that they have no such model. */
const notChat = /\bnot (?:a|supported for) chat|does not support chat|only supported in v1\/(?!chat)/i
const unavailable =
  /not a valid model|no endpoints found|no such model|unknown model|model\b.{0,200}\b(?:does not exist|not found)/i

/** What a provider says definitively, as our own code; every other failure as it is. */
function verdictOn(failure: ProviderFailure, service: ModelService): Error {
  const { facts, told } = failure
  const isOfTheRequest = facts.providerStatus === undefined || [400, 404, 422].includes(facts.providerStatus)
  const message = told.message ?? ''
  if (isOfTheRequest && notChat.test(message))
    return refused(service, 'llm_model_not_chat', 'is not for chat')
  if (isOfTheRequest && (told.code === 'model_not_found' || unavailable.test(message)))
    return refused(service, 'llm_model_unavailable', 'is not there')
  return new ProviderFailure(`${spoken(service)} ${failure.reason}`, facts, told, failure.cause)
}

function refused(service: ModelService, code: 'llm_model_not_chat' | 'llm_model_unavailable', what: string) {
  return new WbError(code, `${spoken(service)}: the provider says that model "${service.modelName}" ${what}`)
}

function completionIn(answer: unknown, service: ModelService): Completion {
  const choices = field(answer, 'choices')
  const choice = Array.isArray(choices) ? choices[0] : undefined
  const text = field(field(choice, 'message'), 'content') ?? ''
  const reason = field(choice, 'finish_reason')
  if (typeof text !== 'string' || choice === undefined || (text === '' && reason !== 'length'))
    throw new ProviderFailure(`${spoken(service)} sent an answer without text`)
  const tokenCount = field(field(answer, 'usage'), 'total_tokens')
  return {
    text,
    finishReason: reason === 'length' || reason === 'tool_calls' ? reason : 'stop',
    tokenCount: typeof tokenCount === 'number' ? tokenCount : null,
  }
}

function failureOf(service: ModelService): Dialling['failed'] {
  return (trouble, reason, facts: FailureFacts = {}, cause) =>
    trouble === 'credential'
      ? new WbError('llm_credential_missing', `${spoken(service)} ${reason}`, facts, { cause })
      : new ProviderFailure(`${spoken(service)} ${reason}`, facts, {}, cause)
}

function spoken({ name, provider }: ModelService): string {
  return `LLM service "${name}" (${provider})`
}
