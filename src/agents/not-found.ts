import { WbError } from '../contract/errors.ts'

export function agentNotFound(agentId: string): WbError {
  return new WbError('agent_not_found', `agent '${agentId}' not found`)
}

export function conversationNotFound(conversationId: string): WbError {
  return new WbError('conversation_not_found', `conversation '${conversationId}' not found`)
}

export function attachmentNotFound(attachmentId: string): WbError {
  return new WbError('attachment_not_found', `attachment '${attachmentId}' not found`)
}

export function messageNotFound(messageId: string): WbError {
  return new WbError('chat_message_not_found', `chat message '${messageId}' not found`)
}
