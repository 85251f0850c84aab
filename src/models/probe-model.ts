import { withTimeout } from '../base/deadline.ts'
import { WbError } from '../contract/errors.ts'
import { isChatProvider, providers } from '../contract/providers.ts'
import type { LlmService } from '../contract/services.ts'
import { type ChatParts, openChat } from './chat/open-chat.ts'

/** Fields that decide which model is called, and how. */
const modelFields = ['provider', 'modelName', 'credentialRef', 'endpointBaseUrl'] as const
const question = [{ role: 'user', content: 'Hi' }] as const
/** Time limit. The request that stores the service waits for the probe. */
const probeTimeoutMs = 5_000

/**
 * Requests one token from the model of a service that is about to be stored, if the provider needs a
 * credential and one is available. Throws only if the provider refuses the model. After any other failure the
 * service can be stored.
 *
 * @param sent  fields that the caller sent
 * @throws llm_model_not_chat, llm_model_unavailable
 * @see docs/services.md#create-a-service
 */
export async function probeModel(
  service: LlmService,
  sent: Partial<LlmService>,
  signal: AbortSignal,
  parts: Omit<ChatParts, 'retriesMax'>,
): Promise<void> {
  const { provider } = service
  if (modelFields.every(field => sent[field] === undefined)) return
  if (!isChatProvider(provider) || providers[provider].keyName === null) return
  const chat = openChat(service, { ...parts, retriesMax: 0 })
  const ask = async (until: AbortSignal) => {
    const { hasCredential } = await chat.check()
    if (hasCredential) await chat.complete(question, { maxTokens: 1, signal: until })
  }
  try {
    await withTimeout(parts.clock, probeTimeoutMs, ask, signal)
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof WbError && error.code !== 'llm_credential_missing') throw error
  }
}
