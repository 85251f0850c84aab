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
import { isLocalEndpoint } from '../local-endpoint.ts'
import { openClient, type ProviderCalls, type ProviderClient } from '../provider/client.ts'
import { ProviderFailure, shownReason } from '../provider/failure.ts'
import type { AnswerPart } from './answer-text.ts'
import type { Chat, ChatMessage, Completion, CompletionSettings } from './completion.ts'
import { begins, Draft } from './draft.ts'
import type { Learned } from './learned.ts'
import { isSecretAvailable } from './provider.ts'
import { learnedFrom, type ModelTraits, refusedSetting, usualTraits } from './traits.ts'
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
  readonly learned: Learned
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
  const open = async (messages: readonly ChatMessage[], settings: CompletionSettings) => {
    const resolving = checked ?? resolve()
    checked = undefined
    const calls = await resolving
    const client = await openClient(calls, parts.outbound)
    return new Request({ service, parts, client, calls, messages, settings })
  }
  return {
    async check() {
      checked = resolve()
      const { credential } = await checked
      return { hasCredential: credential !== undefined }
    },
    async complete(messages, settings) {
      const request = await open(messages, settings)
      for (;;) {
        const { client, body, draft } = request.next(bodyFor(service, provider, parts.chat))
        try {
          draft.add(await client.post(path, body, settings.signal))
          draft.end()
          return request.answered(draft.completion())
        } catch (error) {
          if (!request.learns(error)) throw request.verdictOn(error)
        }
      }
    },
    async *stream(messages, settings) {
      const request = await open(messages, settings)
      const { signal } = settings
      for (;;) {
        const { client, body, draft } = request.next(bodyFor(service, provider, parts.chat))
        const streamed = { ...body, stream: true, ...request.streamOptions }
        try {
          yield* answerParts(client.stream(path, streamed, { clock: parts.clock, signal, begins }), draft)
          signal.throwIfAborted()
          return request.answered(draft.completion())
        } catch (error) {
          if (draft.hasBegun || !request.learns(error)) throw request.verdictOn(error)
        }
      }
    },
  }
}

/** The parts of an answer as it comes. What breaks after the model is done costs no more than the count of its tokens. */
async function* answerParts(events: AsyncIterable<unknown>, draft: Draft): AsyncGenerator<AnswerPart> {
  try {
    for await (const event of events) yield* draft.add(event)
  } catch (error) {
    if (!draft.isFinished) throw error
  }
  yield* draft.end()
}

interface RequestParts {
  readonly service: ModelService
  readonly parts: ChatParts
  readonly client: ProviderClient
  readonly calls: Pick<ProviderCalls, 'endpoint' | 'credential'>
  readonly messages: readonly ChatMessage[]
  readonly settings: CompletionSettings
}

/** A question to a model, which is asked again in another form if the refusal says how. */
class Request {
  readonly #of: RequestParts
  readonly #key: string
  #body: Readonly<Record<string, unknown>> = {}

  constructor(of: RequestParts) {
    this.#of = of
    this.#key = traitsKey(of.service, of.calls.endpoint)
  }

  /** The next form of the request. @param usual  fields that every request to the model has */
  next(usual: object) {
    const { client, messages, settings } = this.#of
    const { body, names, tools } = questionOf(messages, settings, this.#traits)
    this.#body = { ...usual, ...body }
    return { client, body: this.#body, draft: new Draft({ names, tools, maxTokens: settings.maxTokens }) }
  }

  get streamOptions(): object {
    return this.#traits.omitsStreamOptions ? {} : { stream_options: { include_usage: true } }
  }

  /** Returns true if a failure says what form of the request the model takes. */
  learns(error: unknown): boolean {
    if (!(error instanceof ProviderFailure)) return false
    const { parts } = this.#of
    const { kind, providerStatus } = error.facts
    const traits = this.#traits
    if (kind === 'no_tools') parts.learned.traits.set(this.#key, { ...traits, lacksTools: true })
    if (kind !== undefined || providerStatus === undefined || providerStatus >= 500) return false
    const learned = learnedFrom(error.said, { ...this.#body, ...this.streamOptions }, traits)
    if (learned) parts.learned.traits.set(this.#key, learned)
    return learned !== undefined
  }

  /** Returns what a provider says definitively as a code of its own, and every other failure in a sentence. */
  verdictOn(error: unknown): unknown {
    const { service, settings, calls } = this.#of
    if (settings.signal.aborted) return settings.signal.reason
    if (!(error instanceof ProviderFailure)) return error
    const { facts, said } = error
    const isOfTheRequest =
      facts.kind === undefined &&
      (facts.providerStatus === undefined || [400, 404, 422].includes(facts.providerStatus))
    const message = said.message ?? ''
    if (isOfTheRequest && notChat.test(message))
      return refused(service, 'llm_model_not_chat', 'is not for chat')
    if (isOfTheRequest && (said.code === 'model_not_found' || unavailable.test(message)))
      return refused(service, 'llm_model_unavailable', 'is not there')
    const setting = isOfTheRequest ? refusedSetting(said, this.#body) : undefined
    const reason = setting ? `does not take the setting ${setting}` : error.reason
    const hint = setting ? `Change or clear ${setting} of the agent or the service.` : facts.hint
    const shown = shownReason(said, calls.credential)
    const failure = new ProviderFailure(
      `${spoken(service)} ${reason}${shown === '' ? '' : `: "${shown}"`}`,
      { ...facts, ...(hint === undefined ? {} : { hint }) },
      said,
      error.cause,
    )
    this.#of.parts.learned.failures.set(this.#key, failure)
    return failure
  }

  /** Takes note that the model answers. */
  answered(completion: Completion): Completion {
    const { parts, service, calls } = this.#of
    parts.learned.failures.delete(this.#key)
    parts.learned.details.request({ ...service, endpoint: calls.endpoint })
    return completion
  }

  get #traits(): ModelTraits {
    const { parts, calls } = this.#of
    return parts.learned.traits.get(this.#key) ?? usualTraits(calls.endpoint.host)
  }
}

/** Key of a model's traits: what one key may do at a provider says nothing about another. */
function traitsKey({ workspaceId, name, modelName, credentialRef }: ModelService, endpoint: URL): string {
  return JSON.stringify([workspaceId, name, endpoint.href, modelName, credentialRef])
}

/** What earlier requests to a model have shown; null where that is unknown. */
interface SeenModel {
  readonly supportsTools: boolean | null
  readonly contextTokens: number | null
  /** Of the last request. */
  readonly failure: ProviderFailure | undefined
}

/** Returns what earlier requests to the model of a service have shown. */
export function seenOf(
  service: ModelService,
  parts: Pick<ChatParts, 'environment' | 'isReleased' | 'learned'>,
): SeenModel {
  const { provider } = service
  const unknown = { supportsTools: null, contextTokens: null, failure: undefined }
  if (!isChatProvider(provider)) return unknown
  try {
    const dialling: Dialling = { ...parts, service, provider, path, failed: failureOf(service) }
    const endpoint = endpointOf(dialling)
    const key = traitsKey(service, endpoint)
    const { traits, failures, details } = parts.learned
    const { supportsTools = null, contextTokens = null } = details.get({ ...service, endpoint }) ?? {}
    const lacksTools = traits.get(key)?.lacksTools ?? false
    return { supportsTools: lacksTools ? false : supportsTools, contextTokens, failure: failures.get(key) }
  } catch {
    // An address that is not valid is reported by the next request.
    return unknown
  }
}

async function callsTo(dialling: Dialling, provider: ChatProvider, parts: ChatParts): Promise<ProviderCalls> {
  const endpoint = endpointOf(dialling)
  const credential = await credentialAt(dialling, endpoint, parts.chat)
  const headers = provider === 'openrouter' ? attribution : {}
  const timeoutMs = dialling.service.requestTimeoutMs ?? timeoutMsDefault
  const isLocal = provider === 'ollama' || isLocalEndpoint(endpoint)
  return { endpoint, credential, timeoutMs, retriesMax: parts.retriesMax, headers, isLocal }
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
