import type { ConfigEnvironment } from '../../config/config-environment.ts'
import type { Config } from '../../config/schema.ts'
import { resolveSecret } from '../../config/secret-ref.ts'
import { WbError } from '../../contract/errors.ts'
import { needsKey } from '../../contract/providers.ts'
import { defaultBaseUrl, type FailureFacts } from '../endpoint.ts'

type ConfigWithChat = Pick<Config, 'chat'>

/** Returns true if the configured chat provider can be called, and has a key if it needs one. */
export function hasChatProvider(config: ConfigWithChat, environment: ConfigEnvironment): boolean {
  return chatProviderProblem(config, environment) === undefined
}

/** Returns the reason why the configured chat provider cannot be called, and a hint; undefined if it can be called. */
export function chatProviderProblem(
  { chat }: ConfigWithChat,
  environment: ConfigEnvironment,
): (FailureFacts & { readonly reason: string }) | undefined {
  const { enabled, provider, tokenRef, baseUrl } = chat
  if (!enabled)
    return { reason: 'chat.enabled is false in the configuration', hint: 'Give the agent an LLM service.' }
  if (provider === 'ollama') return undefined
  if (tokenRef !== null) return secretProblem(tokenRef, environment)
  const endpoint = new URL(baseUrl ?? defaultBaseUrl(provider, environment))
  if (!needsKey(provider, endpoint)) return undefined
  return {
    reason: `chat.tokenRef is null in the configuration, and ${endpoint.host} needs a key`,
    hint: 'Set chat.tokenRef, or give the agent an LLM service.',
  }
}

/** Returns true if a secret reference resolves to more than white space. */
export function isSecretAvailable(ref: string, environment: ConfigEnvironment): boolean {
  return secretProblem(ref, environment) === undefined
}

function secretProblem(ref: string, environment: ConfigEnvironment) {
  try {
    return resolveSecret(ref, environment).trim() === '' ? { reason: `${ref} is empty` } : undefined
  } catch (error) {
    if (!(error instanceof WbError)) throw error
    return { reason: error.message, hint: error.hint }
  }
}
