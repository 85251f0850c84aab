import type { Environment } from '../../config/environment.ts'
import type { Config } from '../../config/schema.ts'
import { resolveSecret } from '../../config/secret-ref.ts'
import { WbError } from '../../contract/errors.ts'

/** Whether the chat provider of the configuration could be called: one that needs a key has one. */
export function hasChatProvider({ chat }: Pick<Config, 'chat'>, environment: Environment): boolean {
  if (!chat.enabled) return false
  if (chat.provider === 'ollama') return true
  try {
    return resolveSecret(chat.tokenRef, environment).trim() !== ''
  } catch (error) {
    if (error instanceof WbError) return false
    throw error
  }
}
