import type { Clock } from '../../base/clock.ts'
import { WbError } from '../../contract/errors.ts'
import { type ChatProvider, isChatProvider, needsKey } from '../../contract/providers.ts'
import {
  credentialFor,
  type Dialling,
  endpointAt,
  endpointOf,
  type ModelParts,
  type ModelService,
  secretFor,
  usualBaseUrl,
} from '../endpoint.ts'
import { isLocalEndpoint } from '../local-endpoint.ts'
import { openClient, type ProviderCalls } from '../provider/client.ts'
import type { AnswerPart } from './answer-text.ts'
import type { Chat, ChatMessage, CompletionSettings } from './completion.ts'
import { begins, type Draft } from './draft.ts'
import type { Learned } from './learned.ts'
import { chatPath, failureOf, ModelRequest, spoken } from './model-request.ts'
import { isSecretAvailable } from './provider.ts'

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
  const dialling: Dialling = { ...parts, service, provider, path: chatPath, failed: failureOf(service) }
  const resolve = () => callsTo(dialling, provider, parts)
  let checked: ReturnType<typeof resolve> | undefined
  const open = async (messages: readonly ChatMessage[], settings: CompletionSettings) => {
    const resolving = checked ?? resolve()
    checked = undefined
    const calls = await resolving
    const client = await openClient(calls, parts.outbound)
    return new ModelRequest({ service, parts, client, calls, messages, settings })
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
          draft.add(await client.post(chatPath, body, settings.signal))
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
          yield* answerParts(client.stream(chatPath, streamed, { clock: parts.clock, signal, begins }), draft)
          signal.throwIfAborted()
          return request.answered(draft.completion())
        } catch (error) {
          if (draft.hasBegun || !request.learns(error)) throw request.verdictOn(error)
        }
      }
    },
  }
}

/** Streams the parts of an answer. A failure after the end of the answer loses only the token counts. */
async function* answerParts(events: AsyncIterable<unknown>, draft: Draft): AsyncGenerator<AnswerPart> {
  try {
    for await (const event of events) yield* draft.add(event)
  } catch (error) {
    if (!draft.isFinished) throw error
  }
  yield* draft.end()
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
    endpoint.origin ===
      endpointAt(chat.baseUrl ?? usualBaseUrl(provider, environment), provider, chatPath).origin
  const isUsed = isOwn && (needsKey(provider, endpoint) || isSecretAvailable(tokenRef, environment))
  return isUsed ? secretFor(dialling, tokenRef, endpoint) : credentialFor(dialling, endpoint)
}

function bodyFor({ modelName }: ModelService, provider: ChatProvider, { allowDataCollection }: ChatConfig) {
  const isPrivate = provider === 'openrouter' && !allowDataCollection
  return { model: modelName, ...(isPrivate ? { provider: { data_collection: 'deny' } } : {}) }
}
