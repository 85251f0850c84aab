import type { Message } from '../contract/conversations.ts'
import type { MessageRow } from '../storage/tables.ts'

/** A message that the API lists. */
type VisibleRow = MessageRow & { role: Message['role'] }

/**
 * Returns true unless a row contains tool calls or a tool result, which the API does not list as messages.
 *
 * @see docs/agents.md#conversations
 */
export function isVisible(row: MessageRow): row is VisibleRow {
  return row.role !== 'tool' && !(row.role === 'agent' && row.metadata.finish_reason === 'tool_calls')
}
