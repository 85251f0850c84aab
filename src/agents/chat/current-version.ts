import { WbError } from '../../contract/errors.ts'
import type { RowStore } from '../../storage/rows.ts'
import { type MessageRow, tables } from '../../storage/tables.ts'
import { messageNotFound } from '../not-found.ts'

/** Maximum number of messages that one version holds: its question and all that follow. */
export const versionMessagesMax = 1_000
/** Maximum length of these messages as JSON. They are held in memory while versions are exchanged. */
export const versionCharsMax = 16_000_000
/** Maximum number of versions of one question, attempts without an answer included. */
export const versionsMax = 50

/** IDs that locate a conversation in the store. */
export interface StoredConversationKey {
  readonly workspaceId: string
  readonly conversationId: string
}

/** The version of a question that is in the conversation: the message of the user, and all that follow it. */
export interface CurrentVersion {
  /** First version of the question. */
  readonly questionId: string
  readonly rows: readonly [MessageRow, ...MessageRow[]]
}

/**
 * Reads the messages that another version of a message would replace.
 *
 * @param messageId  any version of the question
 * @throws chat_message_not_found  no version of such a question is in the conversation
 * @throws validation_error        more messages follow than one send replaces, or the question has too many versions
 */
export async function readReplacedVersion(
  rows: RowStore,
  place: StoredConversationKey,
  messageId: string,
): Promise<CurrentVersion> {
  const current = await readCurrentVersion(rows, place, await questionIdOf(rows, place, messageId))
  await requireRoomForVersion(rows, place, current.questionId)
  return current
}

/**
 * Checks that a question can have one more version.
 *
 * @throws validation_error  it has the maximum number of versions
 */
export async function requireRoomForVersion(
  rows: RowStore,
  { workspaceId, conversationId }: StoredConversationKey,
  questionId: string,
): Promise<void> {
  const prefix = [workspaceId, conversationId, questionId]
  if ((await rows.count(tables.messageVersions, 'byQuestion', prefix)) < versionsMax - 1) return
  throw new WbError('validation_error', `replaces: the message has ${versionsMax} versions`, {
    hint: 'Send the question as a new message.',
  })
}

/**
 * Returns the id of the first version of a question.
 *
 * @param messageId  any version of it
 * @throws chat_message_not_found
 */
export async function questionIdOf(
  rows: RowStore,
  place: StoredConversationKey,
  messageId: string,
): Promise<string> {
  const key = [place.workspaceId, place.conversationId, messageId]
  const stored = (await rows.get(tables.messages, key)) ?? (await rows.get(tables.messageVersions, key))
  if (stored?.row.role !== 'user') throw messageNotFound(messageId)
  return stored.row.questionId ?? messageId
}

/**
 * Reads the version of a question that is in the conversation.
 *
 * @throws chat_message_not_found  the conversation has none, because an earlier question was replaced
 * @throws validation_error        more messages follow than one send replaces
 */
export async function readCurrentVersion(
  rows: RowStore,
  place: StoredConversationKey,
  questionId: string,
): Promise<CurrentVersion> {
  const prefix = [place.workspaceId, place.conversationId]
  const [chosen] = await rows.list(tables.messages, {
    index: 'byQuestion',
    prefix: [...prefix, questionId],
    limit: 1,
  })
  // A question with one version does not name itself as the first.
  const first = chosen?.row ?? (await rows.get(tables.messages, [...prefix, questionId]))?.row
  if (!first) throw messageNotFound(questionId)
  const later = await rows.list(tables.messages, {
    index: 'byConversation',
    prefix,
    after: [first.messageTs, first.messageId],
    limit: versionMessagesMax,
    charsMax: versionCharsMax,
  })
  if (later.length === versionMessagesMax)
    throw new WbError('validation_error', `replaces: more than ${versionMessagesMax} messages follow it`)
  if (later.reduce((sum, { text }) => sum + text.length, 0) > versionCharsMax)
    throw new WbError('validation_error', `replaces: more than ${versionCharsMax} characters follow it`)
  return { questionId, rows: [first, ...later.map(({ row }) => row)] }
}
