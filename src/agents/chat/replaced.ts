import { WbError } from '../../contract/errors.ts'
import type { RowStore } from '../../storage/rows.ts'
import { type MessageRow, tables } from '../../storage/tables.ts'
import { messageNotFound } from '../missing.ts'

/** Messages that one send replaces at most. */
const replacedMax = 1_000
/** Of them, as JSON: they are held until the answer is there. */
const replacedCharsMax = 16_000_000

/**
 * A message of the user and all that follow it, which give way to another question.
 *
 * @throws chat_message_not_found  there is none, or somebody else said it
 * @throws validation_error        more follow than one send replaces
 */
export async function readReplaced(
  rows: RowStore,
  { workspaceId, conversationId }: { workspaceId: string; conversationId: string },
  messageId: string,
): Promise<MessageRow[]> {
  const first = (await rows.get(tables.messages, [workspaceId, conversationId, messageId]))?.row
  if (first?.role !== 'user') throw messageNotFound(messageId)
  const later = await rows.list(tables.messages, {
    index: 'byConversation',
    prefix: [workspaceId, conversationId],
    after: [first.messageTs, messageId],
    limit: replacedMax,
    charsMax: replacedCharsMax,
  })
  if (later.length === replacedMax)
    throw new WbError('validation_error', `replaces: more than ${replacedMax} messages follow it`)
  if (later.reduce((sum, { chars }) => sum + chars, 0) > replacedCharsMax)
    throw new WbError('validation_error', `replaces: more than ${replacedCharsMax} characters follow it`)
  return [first, ...later.map(({ row }) => row)]
}
