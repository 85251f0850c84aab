import { within } from '../base/deadline.ts'
import { WbError } from '../contract/errors.ts'
import { isChatProvider, providers } from '../contract/providers.ts'
import type { LlmService } from '../contract/services.ts'
import { type ChatParts, openChat } from './chat/chat.ts'

/** Fields that decide which model is asked, where, and with what. */
const deciding = ['provider', 'modelName', 'credentialRef', 'endpointBaseUrl'] as const
const question = [{ role: 'user', content: 'Hi' }] as const
/** Whoever writes a service waits for it. */
const waitMs = 5_000

/**
 * Ask the model of a service that is about to be written for one token, where the provider needs a credential and one
 * is at hand. Only what the provider says definitively is thrown; whatever else comes of it, the service may be written.
 *
 * @param sent  what the caller said of the service
 * @throws llm_model_not_chat, llm_model_unavailable
 * @see contract 4.4
 */
export async function probeModel(
  service: LlmService,
  sent: Partial<LlmService>,
  signal: AbortSignal,
  parts: Omit<ChatParts, 'retriesMax'>,
): Promise<void> {
  const { provider } = service
  if (deciding.every(field => sent[field] === undefined)) return
  if (!isChatProvider(provider) || providers[provider].keyName === null) return
  const chat = openChat(service, { ...parts, retriesMax: 0 })
  const ask = (until: AbortSignal) => chat.complete(question, { maxTokens: 1, signal: until })
  try {
    await within(parts.clock, waitMs, ask, signal)
  } catch (error) {
    signal.throwIfAborted()
    if (error instanceof WbError && error.code !== 'llm_credential_missing') throw error
  }
}
