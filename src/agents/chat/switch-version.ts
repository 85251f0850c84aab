import { WbError } from '../../contract/errors.ts'
import type { RowStore, Write } from '../../storage/rows.ts'
import {
  type ConversationRow,
  type MessageRow,
  type MessageVersionRow,
  tables,
} from '../../storage/tables.ts'
import { conversationNotFound, messageNotFound } from '../not-found.ts'
import {
  type CurrentVersion,
  readCurrentVersion,
  type StoredConversationKey,
  versionCharsMax,
  versionMessagesMax,
} from './current-version.ts'

const attemptsMax = 8

/** A version of a question that replaces the current version. */
export interface ReplacementVersion {
  readonly questionId: string
  /** ID of the user message that the version starts with. */
  readonly versionId: string
  /** Last message of the version, which is stored in the same transaction. */
  readonly answer?: MessageRow
}

/**
 * Moves a version of a question, with all messages that followed it, into the conversation. Moves the current version
 * to the stored versions in the same transaction.
 *
 * @throws conversation_not_found
 * @throws chat_message_not_found  the conversation contains no version of the question, or the version does not exist
 * @throws validation_error        too many messages follow the question
 * @throws conflict                other requests changed the conversation during every attempt
 */
export async function switchVersion(
  rows: RowStore,
  conversationKey: StoredConversationKey,
  replacement: ReplacementVersion,
): Promise<void> {
  const { workspaceId, conversationId } = conversationKey
  const { questionId, versionId, answer } = replacement
  for (let attempt = 0; attempt < attemptsMax; attempt++) {
    const conversation = await rows.get(tables.conversations, [workspaceId, conversationId])
    if (!conversation) throw conversationNotFound(conversationId)
    const current = await readCurrentVersion(rows, conversationKey, questionId)
    // A version can be selected before its answer is complete.
    const isCurrent = current.rows[0].messageId === versionId
    if (isCurrent && !answer) return
    const restoredRows = isCurrent ? [] : await readVersionRows(rows, conversationKey, versionId)
    const row = isCurrent
      ? { ...conversation.row, lastActivityAt: answer!.messageTs }
      : conversationAfterSwitch(conversation.row, current, restoredRows, answer)
    const outcome = await rows.atomic([
      { op: 'replace', table: tables.conversations, row, version: conversation.version },
      ...(isCurrent
        ? []
        : current.rows.flatMap(message => storeVersionWrites(message, current, conversation.row))),
      ...restoredRows.flatMap(restoreWrites),
      ...(answer ? [{ op: 'insert', table: tables.messages, row: answer } as const] : []),
    ])
    if (outcome.ok) return
  }
  throw new WbError(
    'conflict',
    'other requests changed the conversation during every attempt; nothing was written',
  )
}

/**
 * Reads the messages of a stored version, which is not in the conversation.
 *
 * @throws chat_message_not_found  there is no such version
 * @throws validation_error        it has too many messages
 */
async function readVersionRows(
  rows: RowStore,
  { workspaceId, conversationId }: StoredConversationKey,
  versionId: string,
): Promise<MessageVersionRow[]> {
  const stored = await rows.list(tables.messageVersions, {
    index: 'byVersion',
    prefix: [workspaceId, conversationId, versionId],
    limit: versionMessagesMax + 1,
    charsMax: versionCharsMax,
  })
  if (stored[0]?.row.messageId !== versionId) throw messageNotFound(versionId)
  const chars = stored.reduce((sum, { text }) => sum + text.length, 0)
  if (stored.length > versionMessagesMax || chars > versionCharsMax)
    throw new WbError('validation_error', 'the version has too many messages')
  return stored.map(({ row }) => row)
}

/** Returns the conversation row after the switch. Keeps `untrustedSince` if it is earlier than the question. */
function conversationAfterSwitch(
  conversation: ConversationRow,
  { rows: [question] }: CurrentVersion,
  [first]: readonly MessageVersionRow[],
  answer: MessageRow | undefined,
): ConversationRow {
  const { untrustedSince } = conversation
  const isEarlier = Boolean(untrustedSince && untrustedSince < question.messageTs)
  return {
    ...conversation,
    untrustedSince: isEarlier ? untrustedSince : (first!.untrustedSince ?? null),
    ...(answer && { lastActivityAt: answer.messageTs }),
  }
}

function storeVersionWrites(
  message: MessageRow,
  { questionId, rows: [question] }: CurrentVersion,
  { untrustedSince }: ConversationRow,
): Write[] {
  const { workspaceId, conversationId, messageId } = message
  const isFirst = message === question
  const versionRow: MessageVersionRow = {
    ...message,
    versionId: question.messageId,
    ...(isFirst && { questionId }),
    ...(isFirst && untrustedSince && untrustedSince >= question.messageTs && { untrustedSince }),
  }
  return [
    { op: 'delete', table: tables.messages, key: [workspaceId, conversationId, messageId] },
    { op: 'insert', table: tables.messageVersions, row: versionRow },
  ]
}

function restoreWrites({ versionId: _, untrustedSince: __, ...row }: MessageVersionRow): Write[] {
  const { workspaceId, conversationId, messageId } = row
  return [
    { op: 'delete', table: tables.messageVersions, key: [workspaceId, conversationId, messageId] },
    { op: 'insert', table: tables.messages, row },
  ]
}
