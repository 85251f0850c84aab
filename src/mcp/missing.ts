import { WbError } from '../contract/errors.ts'

/** What a conversation that is not there, or not the caller's to see, is called among the tools. @throws chat_not_found */
export function chatNotFound(chatId: string, error: unknown): never {
  if (error instanceof WbError && error.code === 'conversation_not_found')
    throw new WbError('chat_not_found', `chat '${chatId}' not found`)
  throw error
}
