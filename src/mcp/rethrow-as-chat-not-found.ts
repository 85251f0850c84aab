import { WbError } from '../contract/errors.ts'

/**
 * Rethrows an error. Replaces `conversation_not_found` with `chat_not_found`, because the MCP tools call a
 * conversation a chat.
 *
 * @throws chat_not_found  for `conversation_not_found`; any other error unchanged
 */
export function rethrowAsChatNotFound(chatId: string, error: unknown): never {
  if (error instanceof WbError && error.code === 'conversation_not_found')
    throw new WbError('chat_not_found', `chat '${chatId}' not found`)
  throw error
}
