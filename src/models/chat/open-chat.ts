import type { Clock } from '../../base/clock.ts'
import { WbError } from '../../contract/errors.ts'
import { type ChatProvider, isChatProvider, needsKey } from '../../contract/providers.ts'
import {
  defaultBaseUrl,
  type EndpointSettings,
  type ModelDependencies,
  type ModelService,
  parseEndpoint,
  resolveCredential,
  resolveEndpoint,
  resolveEndpointSecret,
} from '../endpoint.ts'
import { isLocalEndpoint } from '../local-endpoint.ts'
import { openProviderClient, type ProviderCallSettings } from '../provider/provider-client.ts'
import type { AnswerPart } from './answer-splitter.ts'
import { isSecretAvailable } from './chat-provider.ts'
import type { ChatClient, ChatMessage, CompletionSettings } from './completion.ts'
import type { LearnedModels } from './learned-models.ts'
import { chatPath, llmFailureFactory, ModelRequest, serviceLabel } from './model-request.ts'
import { type StreamedMessage, startsAnswer } from './streamed-message.ts'

/** Chat settings of the configuration. */
export interface ChatConfig {
  readonly provider: ChatProvider
  /**
   * Reference to the credential of the configured chat model; null for none. The credential is also used for services
   * without a credential at the same endpoint.
   */
  readonly tokenRef: string | null
  readonly baseUrl: string | null
  readonly allowDataCollection: boolean
}

export interface ChatDependencies extends ModelDependencies {
  readonly clock: Clock
  readonly chat: ChatConfig
  readonly learned: LearnedModels
  /** Maximum number of retries of a failed request. */
  readonly retriesMax: number
}

/** Default timeout. It is long, because models can reason for a long time before they write text. */
const timeoutMsDefault = 120_000

/**
 * Opens a chat client for a service. Sends no request and resolves no credential before the first call.
 *
 * @throws llm_provider_unsupported  the runtime cannot call this provider
 * @see https://platform.openai.com/docs/api-reference/chat/create
 */
export function openChat(service: ModelService, deps: ChatDependencies): ChatClient {
  const { provider } = service
  if (!isChatProvider(provider))
    throw new WbError(
      'llm_provider_unsupported',
      `${serviceLabel(service)} has a provider that this runtime cannot call`,
    )
  const endpointSettings: EndpointSettings = {
    ...deps,
    service,
    provider,
    path: chatPath,
    createFailure: llmFailureFactory(service),
  }
  const resolve = () => chatCallSettings(endpointSettings, provider, deps)
  let checked: ReturnType<typeof resolve> | undefined
  const createRequest = async (messages: readonly ChatMessage[], settings: CompletionSettings) => {
    const resolution = checked ?? resolve()
    checked = undefined
    const callSettings = await resolution
    const client = openProviderClient(callSettings, deps.outbound)
    return new ModelRequest({ service, learned: deps.learned, client, callSettings, messages, settings })
  }
  return {
    async check() {
      checked = resolve()
      const { credential } = await checked
      return { hasCredential: credential !== undefined }
    },
    async complete(messages, settings) {
      const request = await createRequest(messages, settings)
      for (;;) {
        const { client, body, draft } = request.nextRequest(commonFields(service, provider, deps.chat))
        try {
          draft.add(await client.post(chatPath, body, settings.signal))
          draft.end()
          return request.recordSuccess(draft.completion())
        } catch (error) {
          if (!request.learnFrom(error)) throw request.toServiceError(error)
        }
      }
    },
    async *stream(messages, settings) {
      const request = await createRequest(messages, settings)
      const { signal } = settings
      for (;;) {
        const { client, body, draft } = request.nextRequest(commonFields(service, provider, deps.chat))
        const streamBody = { ...body, stream: true, ...request.streamOptions }
        try {
          yield* streamAnswerParts(
            client.stream(chatPath, streamBody, { clock: deps.clock, signal, startsAnswer }),
            draft,
          )
          signal.throwIfAborted()
          return request.recordSuccess(draft.completion())
        } catch (error) {
          if (draft.hasStarted || !request.learnFrom(error)) throw request.toServiceError(error)
        }
      }
    },
  }
}

/** Streams the parts of an answer. Ignores a failure after the last part, because only token counts can be lost. */
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

async function chatCallSettings(
  endpointSettings: EndpointSettings,
  provider: ChatProvider,
  deps: ChatDependencies,
): Promise<ProviderCallSettings> {
  const endpoint = resolveEndpoint(endpointSettings)
  const credential = await chatCredential(endpointSettings, endpoint, deps.chat)
  const headers = provider === 'openrouter' ? attribution : {}
  const timeoutMs = endpointSettings.service.requestTimeoutMs ?? timeoutMsDefault
  const isLocal = provider === 'ollama' || isLocalEndpoint(endpoint)
  return { endpoint, credential, timeoutMs, retriesMax: deps.retriesMax, headers, isLocal }
}

/** @see https://openrouter.ai/docs/app-attribution */
const attribution = { 'http-referer': 'http://localhost', 'x-title': 'Workbase' }

/**
 * Resolves the credential of a service. If the service has none, uses the credential of the configured chat model, but
 * only at the same endpoint, so that it is never sent to the endpoint of another service. If that credential does not
 * resolve and the server needs no key, uses none.
 */
async function chatCredential(
  endpointSettings: EndpointSettings,
  endpoint: URL,
  chat: ChatConfig,
): Promise<string | undefined> {
  const { service, provider, environment } = endpointSettings
  const { tokenRef } = chat
  const usesChatCredential =
    tokenRef !== null &&
    service.credentialRef === null &&
    provider === chat.provider &&
    provider !== 'ollama' &&
    endpoint.origin ===
      parseEndpoint(chat.baseUrl ?? defaultBaseUrl(provider, environment), provider, chatPath).origin
  const isUsable =
    usesChatCredential && (needsKey(provider, endpoint) || isSecretAvailable(tokenRef, environment))
  return isUsable
    ? resolveEndpointSecret(endpointSettings, tokenRef, endpoint)
    : resolveCredential(endpointSettings, endpoint)
}

function commonFields(
  { modelName }: ModelService,
  provider: ChatProvider,
  { allowDataCollection }: ChatConfig,
) {
  const isPrivate = provider === 'openrouter' && !allowDataCollection
  return { model: modelName, ...(isPrivate ? { provider: { data_collection: 'deny' } } : {}) }
}
