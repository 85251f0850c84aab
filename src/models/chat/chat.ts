import type { Clock } from '../../base/clock.ts'
import { WbError } from '../../contract/errors.ts'
import { type ChatProvider, isChatProvider, needsKey } from '../../contract/providers.ts'
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
} from '../endpoint.ts'
import { openClient, type ProviderCalls } from '../provider/client.ts'
import { ProviderFailure } from '../provider/failure.ts'
import type { Chat, ChatMessage, CompletionSettings } from './completion.ts'
import { begins, Draft } from './draft.ts'
import { isSecretAvailable } from './provider.ts'
import { questionOf } from './wire.ts'

/** What the configuration says of chats. */
export interface ChatConfig {
  readonly provider: ChatProvider
  /** Credential of the configured chat; null for none. Also used for services without one at the same endpoint. */
  readonly tokenRef: string | null
  readonly baseUrl: string | null
  readonly allowDataCollection: boolean
}

export interface ChatParts extends ModelParts {
  readonly clock: Clock
  readonly chat: ChatConfig
  /** How often a request that a provider could not answer is repeated. */
  readonly retriesMax: number
}

const path = '/chat/completions'
/** A model may think for long before it says anything. */
const timeoutMsDefault = 120_000

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
  const resolve = () => callsTo(dialling, provider, parts)
  let checked: ReturnType<typeof resolve> | undefined
  const asked = async (messages: readonly ChatMessage[], settings: CompletionSettings) => {
    const { body, names } = questionOf(messages, settings)
    const resolving = checked ?? resolve()
    checked = undefined
    const client = await openClient(await resolving, parts.outbound)
    return { client, body: { ...bodyFor(service, provider, parts.chat), ...body }, draft: new Draft(names) }
  }
  return {
    async check() {
      checked = resolve()
      const { credential } = await checked
      return { hasCredential: credential !== undefined }
    },
    async complete(messages, settings) {
      const { client, body, draft } = await asked(messages, settings)
      try {
        draft.add(await client.post(path, body, settings.signal))
        return draft.completion()
      } catch (error) {
        throw verdictOn(error, service, settings.signal)
      }
    },
    async *stream(messages, settings) {
      const { client, body, draft } = await asked(messages, settings)
      const { signal } = settings
      const streamed = { ...body, stream: true, stream_options: { include_usage: true } }
      try {
        yield* pieces(client.stream(path, streamed, { clock: parts.clock, signal, begins }), draft)
        signal.throwIfAborted()
        return draft.completion()
      } catch (error) {
        throw verdictOn(error, service, signal)
      }
    },
  }
}

/** The text of an answer as it comes. What breaks after the model is done costs no more than the count of its tokens. */
async function* pieces(events: AsyncIterable<unknown>, draft: Draft): AsyncGenerator<string> {
  try {
    for await (const event of events) {
      const piece = draft.add(event)
      if (piece !== '') yield piece
    }
  } catch (error) {
    if (!draft.isFinished) throw error
  }
}

async function callsTo(dialling: Dialling, provider: ChatProvider, parts: ChatParts): Promise<ProviderCalls> {
  const endpoint = endpointOf(dialling)
  const credential = await credentialAt(dialling, endpoint, parts.chat)
  const headers = provider === 'openrouter' ? attribution : {}
  const timeoutMs = dialling.service.requestTimeoutMs ?? timeoutMsDefault
  return { endpoint, credential, timeoutMs, retriesMax: parts.retriesMax, headers }
}

/** @see https://openrouter.ai/docs/app-attribution */
const attribution = { 'http-referer': 'http://localhost', 'x-title': 'Workbase' }

/**
 * The service's own credential; the runtime's own for a service that names none and is where the runtime's own chat
 * is, so that a service with another address cannot collect it. If it cannot be resolved, it is left out for a server that
 * needs no key.
 */
async function credentialAt(
  dialling: Dialling,
  endpoint: URL,
  chat: ChatConfig,
): Promise<string | undefined> {
  const { service, provider, environment } = dialling
  const { tokenRef } = chat
  const isOwn =
    tokenRef !== null &&
    service.credentialRef === null &&
    provider === chat.provider &&
    provider !== 'ollama' &&
    endpoint.origin === endpointAt(chat.baseUrl ?? usualBaseUrl(provider, environment), provider, path).origin
  const isUsed = isOwn && (needsKey(provider, endpoint) || isSecretAvailable(tokenRef, environment))
  return isUsed ? secretFor(dialling, tokenRef, endpoint) : credentialFor(dialling, endpoint)
}

function bodyFor({ modelName }: ModelService, provider: ChatProvider, { allowDataCollection }: ChatConfig) {
  const isPrivate = provider === 'openrouter' && !allowDataCollection
  return { model: modelName, ...(isPrivate ? { provider: { data_collection: 'deny' } } : {}) }
}

/** Words by which providers say that a model is of another kind, or that they have no such model. */
const notChat = /\bnot (?:a|supported for) chat|does not support chat|only supported in v1\/(?!chat)/i
const unavailable =
  /not a valid model|no endpoints found|no such model|unknown model|model\b.{0,200}\b(?:does not exist|not found)/i

/** What a provider says definitively, as our own code; every other failure of it in a sentence about the service. */
function verdictOn(error: unknown, service: ModelService, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason
  if (!(error instanceof ProviderFailure)) return error
  const { facts, told } = error
  const isOfTheRequest = facts.providerStatus === undefined || [400, 404, 422].includes(facts.providerStatus)
  const message = told.message ?? ''
  if (isOfTheRequest && notChat.test(message))
    return refused(service, 'llm_model_not_chat', 'is not for chat')
  if (isOfTheRequest && (told.code === 'model_not_found' || unavailable.test(message)))
    return refused(service, 'llm_model_unavailable', 'is not there')
  return new ProviderFailure(`${spoken(service)} ${error.reason}`, facts, told, error.cause)
}

function refused(service: ModelService, code: 'llm_model_not_chat' | 'llm_model_unavailable', what: string) {
  return new WbError(code, `${spoken(service)}: the provider says that model "${service.modelName}" ${what}`)
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
