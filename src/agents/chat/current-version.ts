import { WbError } from '../../contract/errors.ts'
import type { RowStore } from '../../storage/rows.ts'
import { type MessageRow, tables } from '../../storage/tables.ts'
import { messageNotFound } from '../not-found.ts'

/** Maximum number of messages in one version: its question and all messages after it. */
export const versionMessagesMax = 1_000
/** Maximum total length of these messages as JSON. A switch between versions reads them into memory. */
export const versionCharsMax = 16_000_000
/** Maximum number of versions of one question, including attempts without an answer. */
export const versionsMax = 50

/** IDs that identify a conversation in the store. */
export interface StoredConversationKey {
  readonly workspaceId: string
  readonly conversationId: string
}

/** The version of a question that is currently in the conversation: the user message, and all messages after it. */
export interface CurrentVersion {
  /** ID of the first version of the question. */
  readonly questionId: string
  readonly rows: readonly [MessageRow, ...MessageRow[]]
}

/**
 * Reads the messages that another version of a message would replace.
 *
 * @param messageId  any version of the question
 * @throws chat_message_not_found  the conversation contains no version of the question
 * @throws validation_error        too many messages follow, or the question has too many versions
 */
export async function readReplacedVersion(
  rows: RowStore,
  conversationKey: StoredConversationKey,
  messageId: string,
): Promise<CurrentVersion> {
  const current = await readCurrentVersion(
    rows,
    conversationKey,
    await questionIdOf(rows, conversationKey, messageId),
  )
  await checkVersionLimit(rows, conversationKey, current.questionId)
  return current
}

/**
 * Checks that a question can have one more version.
 *
 * @throws validation_error  the question has the maximum number of versions
 */
export async function checkVersionLimit(
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
 * Returns the ID of the first version of a question.
 *
 * @param messageId  any version of the question
 * @throws chat_message_not_found
 */
export async function questionIdOf(
  rows: RowStore,
  conversationKey: StoredConversationKey,
  messageId: string,
): Promise<string> {
  const key = [conversationKey.workspaceId, conversationKey.conversationId, messageId]
  const stored = (await rows.get(tables.messages, key)) ?? (await rows.get(tables.messageVersions, key))
  if (stored?.row.role !== 'user') throw messageNotFound(messageId)
  return stored.row.questionId ?? messageId
}

/**
 * Reads the version of a question that is in the conversation.
 *
 * @throws chat_message_not_found  the conversation contains no version, because an earlier question was replaced
 * @throws validation_error        too many messages follow
 */
export async function readCurrentVersion(
  rows: RowStore,
  conversationKey: StoredConversationKey,
  questionId: string,
): Promise<CurrentVersion> {
  const prefix = [conversationKey.workspaceId, conversationKey.conversationId]
  const [selected] = await rows.list(tables.messages, {
    index: 'byQuestion',
    prefix: [...prefix, questionId],
    limit: 1,
  })
  // The row of a question with a single version has no `questionId`.
  const question = selected?.row ?? (await rows.get(tables.messages, [...prefix, questionId]))?.row
  if (!question) throw messageNotFound(questionId)
  const laterMessages = await rows.list(tables.messages, {
    index: 'byConversation',
    prefix,
    after: [question.messageTs, question.messageId],
    limit: versionMessagesMax,
    charsMax: versionCharsMax,
  })
  if (laterMessages.length === versionMessagesMax)
    throw new WbError('validation_error', `${versionMessagesMax} or more messages follow the question`)
  if (laterMessages.reduce((sum, { text }) => sum + text.length, 0) > versionCharsMax)
    throw new WbError('validation_error', `more than ${versionCharsMax} characters follow the question`)
  return { questionId, rows: [question, ...laterMessages.map(({ row }) => row)] }
}
