import type { Clock } from '../../base/clock.ts'
import { WbError } from '../../contract/errors.ts'
import { type ChatProvider, isChatProvider, needsKey } from '../../contract/providers.ts'
import {
  defaultBaseUrl,
  type EndpointSettings,
  type ModelParts,
  type ModelService,
  parseEndpoint,
  resolveCredential,
  resolveEndpoint,
  resolveEndpointSecret,
} from '../endpoint.ts'
import { isLocalEndpoint } from '../local-endpoint.ts'
import { openProviderClient, type ProviderCalls } from '../provider/provider-client.ts'
import type { AnswerPart } from './answer-text.ts'
import { isSecretAvailable } from './chat-provider.ts'
import type { ChatClient, ChatMessage, CompletionSettings } from './completion.ts'
import type { LearnedModels } from './learned-models.ts'
import { chatPath, createFailure, ModelRequest, serviceLabel } from './model-request.ts'
import { beginsAnswer, type StreamedMessage } from './streamed-message.ts'

/** Chat settings of the configuration. */
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
  readonly learned: LearnedModels
  /** Maximum number of retries when the provider could not answer. */
  readonly retriesMax: number
}

/** Default timeout. Models can reason for a long time before they write anything. */
const timeoutMsDefault = 120_000

/**
 * Opens the chat of a service. Sends no request and resolves no credential before the first call.
 *
 * @throws llm_provider_unsupported  the runtime cannot call this provider
 * @see https://platform.openai.com/docs/api-reference/chat/create
 */
export function openChat(service: ModelService, parts: ChatParts): ChatClient {
  const { provider } = service
  if (!isChatProvider(provider))
    throw new WbError(
      'llm_provider_unsupported',
      `${serviceLabel(service)} has a provider that this runtime cannot call`,
    )
  const dialling: EndpointSettings = {
    ...parts,
    service,
    provider,
    path: chatPath,
    failed: createFailure(service),
  }
  const resolve = () => chatCallsTo(dialling, provider, parts)
  let checked: ReturnType<typeof resolve> | undefined
  const open = async (messages: readonly ChatMessage[], settings: CompletionSettings) => {
    const resolving = checked ?? resolve()
    checked = undefined
    const calls = await resolving
    const client = openProviderClient(calls, parts.outbound)
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
        const { client, body, draft } = request.nextRequest(bodyFor(service, provider, parts.chat))
        try {
          draft.add(await client.post(chatPath, body, settings.signal))
          draft.end()
          return request.recordAnswer(draft.completion())
        } catch (error) {
          if (!request.learnFrom(error)) throw request.toServiceError(error)
        }
      }
    },
    async *stream(messages, settings) {
      const request = await open(messages, settings)
      const { signal } = settings
      for (;;) {
        const { client, body, draft } = request.nextRequest(bodyFor(service, provider, parts.chat))
        const streamed = { ...body, stream: true, ...request.streamOptions }
        try {
          yield* streamAnswerParts(
            client.stream(chatPath, streamed, { clock: parts.clock, signal, begins: beginsAnswer }),
            draft,
          )
          signal.throwIfAborted()
          return request.recordAnswer(draft.completion())
        } catch (error) {
          if (draft.hasBegun || !request.learnFrom(error)) throw request.toServiceError(error)
        }
      }
    },
  }
}

/** Streams the parts of an answer. A failure after the end of the answer loses only the token counts. */
async function* streamAnswerParts(
  events: AsyncIterable<unknown>,
  draft: StreamedMessage,
): AsyncGenerator<AnswerPart> {
  try {
    for await (const event of events) yield* draft.add(event)
  } catch (error) {
    if (!draft.isFinished) throw error
  }
  yield* draft.end()
}

async function chatCallsTo(
  dialling: EndpointSettings,
  provider: ChatProvider,
  parts: ChatParts,
): Promise<ProviderCalls> {
  const endpoint = resolveEndpoint(dialling)
  const credential = await credentialAt(dialling, endpoint, parts.chat)
  const headers = provider === 'openrouter' ? attribution : {}
  const timeoutMs = dialling.service.requestTimeoutMs ?? timeoutMsDefault
  const isLocal = provider === 'ollama' || isLocalEndpoint(endpoint)
  return { endpoint, credential, timeoutMs, retriesMax: parts.retriesMax, headers, isLocal }
}

/** @see https://openrouter.ai/docs/app-attribution */
const attribution = { 'http-referer': 'http://localhost', 'x-title': 'Workbase' }

/**
 * Resolves the credential of a service. A service without one gets the credential of the configured chat, but
 * only at the same endpoint, so that a service with another address cannot collect it. A credential that does
 * not resolve is left out if the server needs no key.
 */
async function credentialAt(
  dialling: EndpointSettings,
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
      parseEndpoint(chat.baseUrl ?? defaultBaseUrl(provider, environment), provider, chatPath).origin
  const isUsed = isOwn && (needsKey(provider, endpoint) || isSecretAvailable(tokenRef, environment))
  return isUsed ? resolveEndpointSecret(dialling, tokenRef, endpoint) : resolveCredential(dialling, endpoint)
}

function bodyFor({ modelName }: ModelService, provider: ChatProvider, { allowDataCollection }: ChatConfig) {
  const isPrivate = provider === 'openrouter' && !allowDataCollection
  return { model: modelName, ...(isPrivate ? { provider: { data_collection: 'deny' } } : {}) }
}
