import { WbError } from '../contract/errors.ts'

/**
 * Rethrows an error. A conversation that is missing or not visible to the caller is reported as a chat, its
 * name in the tools.
 *
 * @throws chat_not_found  for `conversation_not_found`; any other error unchanged
 */
export function chatNotFound(chatId: string, error: unknown): never {
  if (error instanceof WbError && error.code === 'conversation_not_found')
    throw new WbError('chat_not_found', `chat '${chatId}' not found`)
  throw error
}
