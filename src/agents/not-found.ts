import { WbError } from '../contract/errors.ts'
import type { ConversationRow } from '../storage/tables.ts'

export function agentNotFound(agentId: string): WbError {
  return new WbError('agent_not_found', `agent '${agentId}' not found`)
}

export function conversationNotFound(conversationId: string): WbError {
  return new WbError('conversation_not_found', `conversation '${conversationId}' not found`)
}

/**
 * Checks that a conversation is the one that was read before. After a deletion, another caller can create one with the same ID.
 *
 * @throws conversation_not_found
 */
export function requireSameConversation(current: ConversationRow, earlier: ConversationRow): void {
  const isSame =
    current.createdAt === earlier.createdAt &&
    current.ownerPrincipalId === earlier.ownerPrincipalId &&
    current.createdBy === earlier.createdBy
  if (!isSame) throw conversationNotFound(earlier.conversationId)
}

export function attachmentNotFound(attachmentId: string): WbError {
  return new WbError('attachment_not_found', `attachment '${attachmentId}' not found`)
}

export function messageNotFound(messageId: string): WbError {
  return new WbError('chat_message_not_found', `chat message '${messageId}' not found`)
}
