import { WbError } from '../../contract/errors.ts'
import { isChatProvider } from '../../contract/providers.ts'
import { type EndpointSettings, type FailureFacts, type ModelService, resolveEndpoint } from '../endpoint.ts'
import type { ProviderCallSettings, ProviderClient } from '../provider/provider-client.ts'
import { formatProviderReason, ProviderFailure } from '../provider/provider-failure.ts'
import { buildChatRequest } from './chat-request.ts'
import type { ChatMessage, Completion, CompletionSettings } from './completion.ts'
import type { LearnedModels } from './learned-models.ts'
import { initialTraits, type ModelTraits, refusedSetting, traitsAfterRefusal } from './model-traits.ts'
import { StreamedMessage } from './streamed-message.ts'

/** Path of chat completions, relative to the endpoint. */
export const chatPath = '/chat/completions'
/**
 * Maximum number of times that a request is repeated in another format, in case the provider rejects every format.
 */
const formatChangesMax = 4

/** Inputs of a {@link ModelRequest}. */
interface ModelRequestInputs {
  readonly service: ModelService
  readonly learned: LearnedModels
  readonly client: ProviderClient
  readonly callSettings: Pick<ProviderCallSettings, 'endpoint' | 'credential'>
  readonly messages: readonly ChatMessage[]
  readonly settings: CompletionSettings
}

/** A request to a model. It can be repeated in another format if the provider's error message suggests one. */
export class ModelRequest {
  readonly #inputs: ModelRequestInputs
  readonly #key: string
  #body: Readonly<Record<string, unknown>> = {}
  #formatChanges = 0

  constructor(inputs: ModelRequestInputs) {
    this.#inputs = inputs
    this.#key = traitsKey(inputs.service, inputs.callSettings.endpoint)
  }

  /**
   * Returns the request in the format that the model is currently known to accept.
   *
   * @param baseFields  fields that all requests to the model contain
   */
  nextRequest(baseFields: object) {
    const { client, messages, settings } = this.#inputs
    const { body, names, tools } = buildChatRequest(messages, settings, this.#traits)
    this.#body = { ...baseFields, ...body }
    return {
      client,
      body: this.#body,
      draft: new StreamedMessage({ names, tools, maxTokens: settings.maxTokens }),
    }
  }

  get streamOptions(): object {
    return this.#traits.omitsStreamOptions ? {} : { stream_options: { include_usage: true } }
  }

  /** Records what a failure shows about the model. Returns true if the request can be repeated in another format. */
  learnFrom(error: unknown): boolean {
    if (!(error instanceof ProviderFailure)) return false
    const traitsByKey = this.#inputs.learned.traits
    const { kind, providerStatus } = error.facts
    const traits = this.#traits
    const hasImages = this.#inputs.messages.some(message => 'images' in message)
    if (kind === 'no_images' && hasImages) traitsByKey.set(this.#key, { ...traits, lacksImages: true })
    if (kind === 'no_tools') traitsByKey.set(this.#key, { ...traits, lacksTools: true })
    if (kind !== undefined || providerStatus === undefined || providerStatus >= 500) return false
    if (this.#formatChanges++ === formatChangesMax) return false
    const newTraits = traitsAfterRefusal(
      error.providerReason,
      { ...this.#body, ...this.streamOptions },
      traits,
    )
    if (newTraits) traitsByKey.set(this.#key, newTraits)
    return newTraits !== undefined
  }

  /**
   * Returns the error to throw for a failure. Its code is specific if the model does not exist or cannot chat.
   */
  toServiceError(error: unknown): unknown {
    const { service, settings, callSettings } = this.#inputs
    if (settings.signal.aborted) return settings.signal.reason
    if (!(error instanceof ProviderFailure)) return error
    const { facts, providerReason } = error
    const isRequestProblem =
      facts.kind === undefined &&
      (facts.providerStatus === undefined || [400, 404, 422].includes(facts.providerStatus))
    const message = providerReason.message ?? ''
    if (isRequestProblem && notChatPattern.test(message))
      return modelError(service, 'llm_model_not_chat', 'does not support chat')
    if (isRequestProblem && (providerReason.code === 'model_not_found' || modelMissingPattern.test(message)))
      return modelError(service, 'llm_model_unavailable', 'does not exist')
    const setting = isRequestProblem ? refusedSetting(providerReason, this.#body) : undefined
    const reason = setting ? `does not support the setting ${setting}` : error.reason
    const hint = setting ? `Change or clear ${setting} of the agent or the service.` : facts.hint
    const quotedMessage = formatProviderReason(providerReason, callSettings.credential)
    const failure = new ProviderFailure(
      `${serviceLabel(service)} ${reason}${quotedMessage === '' ? '' : `: "${quotedMessage}"`}`,
      { ...facts, ...(hint === undefined ? {} : { hint }) },
      providerReason,
      error.cause,
    )
    // A failure because of the token limit is not recorded: a probe allows only one token, which reasoning can use.
    if (facts.kind !== 'reasoning_budget') this.#inputs.learned.failures.set(this.#key, failure)
    return failure
  }

  /** Records that the model answered, and returns the answer. */
  recordSuccess(completion: Completion): Completion {
    const { learned, service, callSettings } = this.#inputs
    learned.failures.delete(this.#key)
    learned.details.request({ ...service, endpoint: callSettings.endpoint })
    return completion
  }

  get #traits(): ModelTraits {
    const { learned, callSettings } = this.#inputs
    return learned.traits.get(this.#key) ?? initialTraits(callSettings.endpoint.host)
  }
}

/**
 * Returns the key for a model's traits. The key includes the credential reference, because a model can behave
 * differently for different credentials.
 */
function traitsKey({ workspaceId, name, modelName, credentialRef }: ModelService, endpoint: URL): string {
  return JSON.stringify([workspaceId, name, endpoint.href, modelName, credentialRef])
}

/** Properties of a model that are known from earlier requests. Null means unknown. */
interface KnownModelFacts {
  readonly supportsTools: boolean | null
  readonly supportsImages: boolean | null
  readonly contextTokens: number | null
  readonly wantsReasoning: boolean
  /** Failure of the last request; undefined if it succeeded. */
  readonly failure: ProviderFailure | undefined
}

/** Returns the properties of a service's model that are known from earlier requests. */
export function knownModelFacts(
  service: ModelService,
  inputs: Pick<EndpointSettings, 'environment' | 'isReleased'> & { readonly learned: LearnedModels },
): KnownModelFacts {
  const { provider } = service
  const unknown = {
    supportsTools: null,
    supportsImages: null,
    contextTokens: null,
    wantsReasoning: false,
    failure: undefined,
  }
  if (!isChatProvider(provider)) return unknown
  try {
    const endpointSettings: EndpointSettings = {
      ...inputs,
      service,
      provider,
      path: chatPath,
      createFailure: llmFailureFactory(service),
    }
    const endpoint = resolveEndpoint(endpointSettings)
    const key = traitsKey(service, endpoint)
    const { traits, failures, details } = inputs.learned
    const {
      supportsTools = null,
      supportsImages = null,
      contextTokens = null,
    } = details.get({ ...service, endpoint }) ?? {}
    const { lacksTools, lacksImages, wantsReasoning } = traits.get(key) ?? initialTraits(endpoint.host)
    return {
      supportsTools: lacksTools ? false : supportsTools,
      supportsImages: lacksImages ? false : supportsImages,
      contextTokens,
      wantsReasoning,
      failure: failures.get(key),
    }
  } catch {
    // The next request reports an invalid address.
    return unknown
  }
}

/** Patterns that match provider messages about a model that cannot chat, and about a model that does not exist. */
const notChatPattern = /\bnot (?:a|supported for) chat|does not support chat|only supported in v1\/(?!chat)/i
const modelMissingPattern =
  /not a valid model|no endpoints found|no such model|unknown model|model\b.{0,200}\b(?:does not exist|not found)/i

function modelError(
  service: ModelService,
  code: 'llm_model_not_chat' | 'llm_model_unavailable',
  statement: string,
) {
  return new WbError(
    code,
    `${serviceLabel(service)}: the provider reports that model "${service.modelName}" ${statement}`,
  )
}

/** Returns a function that creates failures of an LLM service. */
export function llmFailureFactory(service: ModelService): EndpointSettings['createFailure'] {
  return (source, reason, facts: FailureFacts = {}, cause) =>
    source === 'credential'
      ? new WbError('llm_credential_missing', `${serviceLabel(service)} ${reason}`, facts, { cause })
      : new ProviderFailure(`${serviceLabel(service)} ${reason}`, facts, {}, cause)
}

/** Returns the kind and the name of a service with a chat model, for use in messages. */
export function serviceLabel({ name, provider, rerankingServiceId }: ModelService): string {
  return `${rerankingServiceId === undefined ? 'LLM' : 'reranking'} service "${name}" (${provider})`
}
