import type { Config } from '../../config/schema.ts'
import { WbError } from '../../contract/errors.ts'
import type { LlmService } from '../../contract/services.ts'
import { chatProviderProblem } from './chat-provider.ts'
import type { ChatClient, SamplingSettings } from './completion.ts'
import { knownModelFacts } from './model-request.ts'
import { type ChatDependencies, openChat } from './open-chat.ts'
import { toSamplingSettings } from './sampling.ts'

const retriesMax = 2

/** A chat model and its known properties. */
export interface ChatModel {
  readonly chat: ChatClient
  /** The provider's name for the model. */
  readonly model: string
  readonly provider: string
  /** Maximum number of tokens in one answer. */
  readonly maxTokens: number
  /** Maximum total number of tokens in the prompt and the answer; null if unknown. */
  readonly contextWindowTokens: number | null
  readonly supportsTools: boolean | null
  readonly supportsImages: boolean | null
  readonly supportsStreaming: boolean | null
  /** True if requests must contain the reasoning of earlier answers in the turn. */
  readonly wantsReasoning: boolean
  /** Sampling settings of the service. */
  readonly sampling: SamplingSettings
}

type ChatModelDependencies = Omit<ChatDependencies, 'retriesMax' | 'chat'> & { readonly chat: Config['chat'] }

/**
 * Opens the model of an LLM service.
 *
 * @throws llm_provider_unsupported  the runtime cannot call the provider of the service
 */
export function openServiceModel(service: LlmService, deps: ChatModelDependencies): ChatModel {
  const { provider, modelName, maxOutputTokens, contextWindowTokens, supportsTools, supportsStreaming } =
    service
  const facts = knownModelFacts(service, deps)
  return {
    chat: openChat(service, { ...deps, retriesMax }),
    model: modelName,
    provider,
    maxTokens: maxOutputTokens ?? deps.chat.maxOutputTokens,
    contextWindowTokens: contextWindowTokens ?? facts.contextTokens,
    supportsTools: supportsTools ?? facts.supportsTools,
    supportsImages: facts.supportsImages,
    supportsStreaming,
    wantsReasoning: facts.wantsReasoning,
    sampling: toSamplingSettings(service),
  }
}

/**
 * Opens the chat model of the configuration. Does not require that its credential is released, because the
 * configuration also determines the host that receives it.
 *
 * @throws chat_disabled  chat is disabled, or its credential is missing
 */
export function openConfiguredModel(deps: ChatModelDependencies): ChatModel {
  const { chat, environment } = deps
  const problem = chatProviderProblem({ chat }, environment)
  if (problem) {
    const { reason, ...facts } = problem
    const message = `the agent has no LLM service, and the runtime has no chat provider: ${reason}`
    throw new WbError('chat_disabled', message, facts)
  }
  const { provider, model, baseUrl, requestTimeoutMs, maxOutputTokens } = chat
  const service = {
    name: 'chat',
    provider,
    modelName: model,
    workspaceId: '',
    endpointBaseUrl: baseUrl,
    endpointPath: null,
    credentialRef: null,
    requestTimeoutMs,
  }
  const { contextTokens, supportsTools, supportsImages, wantsReasoning } = knownModelFacts(service, deps)
  return {
    chat: openChat(service, { ...deps, retriesMax }),
    model,
    provider,
    maxTokens: maxOutputTokens,
    contextWindowTokens: contextTokens,
    supportsTools,
    supportsImages,
    supportsStreaming: null,
    wantsReasoning,
    sampling: {},
  }
}
