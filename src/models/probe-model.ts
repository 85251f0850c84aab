import { withTimeout } from '../base/deadline.ts'
import { WbError } from '../contract/errors.ts'
import { isChatProvider, providers } from '../contract/providers.ts'
import type { LlmService } from '../contract/services.ts'
import { type ChatDependencies, openChat } from './chat/open-chat.ts'

/** Fields that determine which model is called, and how. */
const modelFields = ['provider', 'modelName', 'credentialRef', 'endpointBaseUrl'] as const
const probeMessages = [{ role: 'user', content: 'Hi' }] as const
/** Maximum time for the probe. It is short, because the request that stores the service waits for the probe. */
const probeTimeoutMs = 5_000

/**
 * Checks the model of a service before the service is stored, by requesting one token. Does nothing if the provider
 * needs no credential, or if none is available. Throws only if the provider reports that the model does not exist or
 * cannot chat. Other failures do not prevent storing the service.
 *
 * @param changes  fields that the caller sets; if none of them affects the model, no request is sent
 * @throws llm_model_not_chat, llm_model_unavailable
 * @see docs/services.md#create-a-service
 */
export async function probeModel(
  service: LlmService,
  changes: Partial<LlmService>,
  signal: AbortSignal,
  deps: Omit<ChatDependencies, 'retriesMax'>,
): Promise<void> {
  const { provider } = service
  if (modelFields.every(field => changes[field] === undefined)) return
  if (!isChatProvider(provider) || providers[provider].keyName === null) return
  const chat = openChat(service, { ...deps, retriesMax: 0 })
  const requestToken = async (probeSignal: AbortSignal) => {
    const { hasCredential } = await chat.check()
    if (hasCredential) await chat.complete(probeMessages, { maxTokens: 1, signal: probeSignal })
  }
  try {
    await withTimeout(deps.clock, probeTimeoutMs, requestToken, signal)
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof WbError && error.code !== 'llm_credential_missing') throw error
  }
}
