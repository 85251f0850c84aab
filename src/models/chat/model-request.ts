import { WbError } from '../../contract/errors.ts'
import { isChatProvider } from '../../contract/providers.ts'
import { type EndpointSettings, type FailureFacts, type ModelService, resolveEndpoint } from '../endpoint.ts'
import type { ProviderCalls, ProviderClient } from '../provider/provider-client.ts'
import { ProviderFailure, shownReason } from '../provider/provider-failure.ts'
import { buildChatRequest } from './chat-request.ts'
import type { ChatMessage, Completion, CompletionSettings } from './completion.ts'
import type { LearnedModels } from './learned-models.ts'
import { initialTraits, type ModelTraits, refusedSetting, traitsAfterRefusal } from './model-traits.ts'
import { StreamedMessage } from './streamed-message.ts'

/** Path of chat completions below the endpoint. */
export const chatPath = '/chat/completions'
/**
 * Maximum number of times that a request is sent in a changed format. Limits providers that refuse every
 * format.
 */
const formatChangesMax = 4

/** Inputs of a request to a model. */
interface RequestParts {
  readonly service: ModelService
  readonly parts: { readonly learned: LearnedModels }
  readonly client: ProviderClient
  readonly calls: Pick<ProviderCalls, 'endpoint' | 'credential'>
  readonly messages: readonly ChatMessage[]
  readonly settings: CompletionSettings
}

/** A request to a model. It is sent again in another format if the provider's refusal suggests one. */
export class ModelRequest {
  readonly #of: RequestParts
  readonly #key: string
  #body: Readonly<Record<string, unknown>> = {}
  #lessons = 0

  constructor(of: RequestParts) {
    this.#of = of
    this.#key = traitsKey(of.service, of.calls.endpoint)
  }

  /**
   * Returns the request in the format that currently applies.
   *
   * @param usual  fields that every request to the model has
   */
  nextRequest(usual: object) {
    const { client, messages, settings } = this.#of
    const { body, names, tools } = buildChatRequest(messages, settings, this.#traits)
    this.#body = { ...usual, ...body }
    return {
      client,
      body: this.#body,
      draft: new StreamedMessage({ names, tools, maxTokens: settings.maxTokens }),
    }
  }

  get streamOptions(): object {
    return this.#traits.omitsStreamOptions ? {} : { stream_options: { include_usage: true } }
  }

  /** Returns true if a failure shows which request format the model accepts. */
  learnFrom(error: unknown): boolean {
    if (!(error instanceof ProviderFailure)) return false
    const { parts } = this.#of
    const { kind, providerStatus } = error.facts
    const traits = this.#traits
    const hasImages = this.#of.messages.some(message => 'images' in message)
    if (kind === 'no_images' && hasImages)
      parts.learned.traits.set(this.#key, { ...traits, lacksImages: true })
    if (kind === 'no_tools') parts.learned.traits.set(this.#key, { ...traits, lacksTools: true })
    if (kind !== undefined || providerStatus === undefined || providerStatus >= 500) return false
    if (this.#lessons++ === formatChangesMax) return false
    const learned = traitsAfterRefusal(error.said, { ...this.#body, ...this.streamOptions }, traits)
    if (learned) parts.learned.traits.set(this.#key, learned)
    return learned !== undefined
  }

  /**
   * Returns the error to throw for a failure. It has its own code if the model does not exist or cannot chat.
   */
  toServiceError(error: unknown): unknown {
    const { service, settings, calls } = this.#of
    if (settings.signal.aborted) return settings.signal.reason
    if (!(error instanceof ProviderFailure)) return error
    const { facts, said } = error
    const isOfTheRequest =
      facts.kind === undefined &&
      (facts.providerStatus === undefined || [400, 404, 422].includes(facts.providerStatus))
    const message = said.message ?? ''
    if (isOfTheRequest && notChat.test(message))
      return modelRefused(service, 'llm_model_not_chat', 'is not for chat')
    if (isOfTheRequest && (said.code === 'model_not_found' || unavailable.test(message)))
      return modelRefused(service, 'llm_model_unavailable', 'is not there')
    const setting = isOfTheRequest ? refusedSetting(said, this.#body) : undefined
    const reason = setting ? `does not take the setting ${setting}` : error.reason
    const hint = setting ? `Change or clear ${setting} of the agent or the service.` : facts.hint
    const shown = shownReason(said, calls.credential)
    const failure = new ProviderFailure(
      `${serviceLabel(service)} ${reason}${shown === '' ? '' : `: "${shown}"`}`,
      { ...facts, ...(hint === undefined ? {} : { hint }) },
      said,
      error.cause,
    )
    // A probe allows one token, which reasoning alone can use up.
    if (facts.kind !== 'reasoning_budget') this.#of.parts.learned.failures.set(this.#key, failure)
    return failure
  }

  /** Records that the model answers. */
  recordAnswer(completion: Completion): Completion {
    const { parts, service, calls } = this.#of
    parts.learned.failures.delete(this.#key)
    parts.learned.details.request({ ...service, endpoint: calls.endpoint })
    return completion
  }

  get #traits(): ModelTraits {
    const { parts, calls } = this.#of
    return parts.learned.traits.get(this.#key) ?? initialTraits(calls.endpoint.host)
  }
}

/**
 * Returns the key under which a model's traits are stored. It includes the credential, because access can
 * differ by credential.
 */
function traitsKey({ workspaceId, name, modelName, credentialRef }: ModelService, endpoint: URL): string {
  return JSON.stringify([workspaceId, name, endpoint.href, modelName, credentialRef])
}

/** Properties of a model that are known from earlier requests; null if unknown. */
interface KnownModelFacts {
  readonly supportsTools: boolean | null
  readonly supportsImages: boolean | null
  readonly contextTokens: number | null
  readonly wantsReasoning: boolean
  /** Failure of the last request. */
  readonly failure: ProviderFailure | undefined
}

/** Returns the properties of a service's model that are known from earlier requests. */
export function knownModelFacts(
  service: ModelService,
  parts: Pick<EndpointSettings, 'environment' | 'isReleased'> & { readonly learned: LearnedModels },
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
    const dialling: EndpointSettings = {
      ...parts,
      service,
      provider,
      path: chatPath,
      failed: createFailure(service),
    }
    const endpoint = resolveEndpoint(dialling)
    const key = traitsKey(service, endpoint)
    const { traits, failures, details } = parts.learned
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

/** Error messages of providers for a model that cannot chat, and for a model that does not exist. */
const notChat = /\bnot (?:a|supported for) chat|does not support chat|only supported in v1\/(?!chat)/i
const unavailable =
  /not a valid model|no endpoints found|no such model|unknown model|model\b.{0,200}\b(?:does not exist|not found)/i

function modelRefused(
  service: ModelService,
  code: 'llm_model_not_chat' | 'llm_model_unavailable',
  what: string,
) {
  return new WbError(
    code,
    `${serviceLabel(service)}: the provider says that model "${service.modelName}" ${what}`,
  )
}

/** Returns a function that creates the failures of a service. */
export function createFailure(service: ModelService): EndpointSettings['failed'] {
  return (trouble, reason, facts: FailureFacts = {}, cause) =>
    trouble === 'credential'
      ? new WbError('llm_credential_missing', `${serviceLabel(service)} ${reason}`, facts, { cause })
      : new ProviderFailure(`${serviceLabel(service)} ${reason}`, facts, {}, cause)
}

/** Returns the name of a service in messages. */
export function serviceLabel({ name, provider }: ModelService): string {
  return `LLM service "${name}" (${provider})`
}
