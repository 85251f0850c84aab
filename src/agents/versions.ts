import { setImmediate as yieldToEventLoop } from 'node:timers/promises'
import pMap from 'p-map'
import type { AuthContext } from '../access/subject.ts'
import { cutUnits } from '../base/cut-units.ts'
import type { Message, MessageVersion } from '../contract/conversations.ts'
import { WbError } from '../contract/errors.ts'
import type { RowStore } from '../storage/rows.ts'
import { type MessageRow, type MessageVersionRow, tables } from '../storage/tables.ts'
import { questionIdOf, type StoredConversationKey, versionsMax } from './chat/current-version.ts'
import { switchVersion } from './chat/switch-version.ts'
import type { ConversationKey, Conversations } from './conversations.ts'
import { toMessage } from './messages.ts'
import { messageNotFound } from './not-found.ts'
import { isVisible } from './visible-message.ts'

/** Maximum number and total length of the rows in one read when an answer is searched for. */
const answerBatch = { limit: 50, charsMax: 200_000 }
/** Maximum length in UTF-16 units of an answer in a list of versions. Longer answers are truncated. */
const answerCharsMax = 20_000
/** Maximum number of versions whose answers are read concurrently. */
const concurrentReadsMax = 4

/** Position of a message in the conversation, or in a stored version if `versionId` is set. */
type MessagePosition = Pick<MessageRow, 'messageTs' | 'messageId'> & { readonly versionId?: string }

/** Versions of questions. Callers need access to the conversation. @see docs/decisions/0031-message-versions.md */
export class Versions {
  constructor(private readonly deps: { rows: RowStore; conversations: Pick<Conversations, 'get'> }) {}

  /**
   * Returns all versions of a question, oldest first. Long answers are truncated, and marked with
   * `metadata.content_truncated`.
   *
   * @throws workspace_not_found, conversation_not_found, chat_message_not_found
   */
  async list(
    messageKey: ConversationKey & { messageId: string },
    auth: AuthContext,
  ): Promise<MessageVersion[]> {
    const { rows, conversations } = this.deps
    await conversations.get(messageKey, auth)
    const questionId = await questionIdOf(rows, messageKey, messageKey.messageId)
    const query = {
      index: 'byQuestion',
      prefix: [messageKey.workspaceId, messageKey.conversationId, questionId],
      limit: versionsMax,
    }
    const [stored, current, original] = await Promise.all([
      rows.list(tables.messageVersions, query),
      rows.list(tables.messages, query),
      rows.get(tables.messages, [messageKey.workspaceId, messageKey.conversationId, questionId]),
    ])
    const currentQuestion = current[0]?.row ?? original?.row
    const questions = [...stored.map(({ row }) => row), ...(currentQuestion ? [currentQuestion] : [])]
    const versionOf = async (question: MessageRow) => ({
      message: toMessage(question),
      answer: await this.#answerTo(messageKey, question),
      isCurrent: question === currentQuestion,
    })
    const versions = await pMap(questions, versionOf, { concurrency: concurrentReadsMax })
    return versions.sort((a, b) => (a.message.messageTs < b.message.messageTs ? -1 : 1))
  }

  /**
   * Makes a version of a question the current one, with all messages that followed it.
   *
   * @throws workspace_not_found, conversation_not_found, chat_message_not_found
   * @throws conflict  the conversation contains no version of the question, or other requests changed the conversation
   *   during every attempt
   */
  async select(messageKey: ConversationKey & { messageId: string }, auth: AuthContext): Promise<Message> {
    const { rows, conversations } = this.deps
    await conversations.get(messageKey, auth)
    const { messageId } = messageKey
    const key = [messageKey.workspaceId, messageKey.conversationId, messageId]
    const stored = await rows.get(tables.messageVersions, key)
    const question = stored?.row ?? (await rows.get(tables.messages, key))?.row
    if (question?.role !== 'user') throw messageNotFound(messageId)
    if (stored) {
      const parentId = await this.#parentOf(stored.row)
      if (parentId !== undefined)
        throw new WbError('conflict', 'another version of an earlier question is in the conversation', {
          hint: `Select version ${parentId} first.`,
        })
      await switchVersion(rows, messageKey, { questionId: stored.row.questionId!, versionId: messageId })
    }
    return toMessage(question)
  }

  /**
   * Returns the ID of the version that must be selected first: the stored version of an earlier question, if the
   * question was asked in it. Returns undefined if the conversation contains the earlier questions.
   */
  async #parentOf({ workspaceId, conversationId, questionId, messageId, versionId }: MessageVersionRow) {
    if (versionId !== messageId) return versionId
    // Only one version of the question is stored with the earlier version: the one that was current there.
    const stored = await this.deps.rows.list(tables.messageVersions, {
      index: 'byQuestion',
      prefix: [workspaceId, conversationId, questionId!],
      limit: versionsMax,
    })
    return stored.find(({ row }) => row.versionId !== row.messageId)?.row.versionId
  }

  async #answerTo(
    conversationKey: StoredConversationKey,
    question: MessageRow | MessageVersionRow,
  ): Promise<Message | null> {
    let last: MessagePosition = question
    for (;;) {
      const batch: MessageRow[] = await this.#messagesAfter(conversationKey, last)
      // A summary of earlier turns can be between a question and its answer.
      const next = batch.find(row => row.role === 'user' || (row.role === 'agent' && isVisible(row)))
      if (next) return next.role === 'agent' ? truncateAnswer(toMessage(next)) : null
      if (batch.length === 0) return null
      last = { ...batch.at(-1)!, ...('versionId' in question && { versionId: question.versionId }) }
      // Store reads can complete synchronously. Without this pause, reading many rows would block the event loop.
      await yieldToEventLoop()
    }
  }

  async #messagesAfter(
    { workspaceId, conversationId }: StoredConversationKey,
    { versionId, messageTs, messageId }: MessagePosition,
  ): Promise<MessageRow[]> {
    const prefix = [workspaceId, conversationId]
    const query = { after: [messageTs, messageId], ...answerBatch }
    const stored =
      versionId === undefined
        ? await this.deps.rows.list(tables.messages, { ...query, index: 'byConversation', prefix })
        : await this.deps.rows.list(tables.messageVersions, {
            ...query,
            index: 'byVersion',
            prefix: [...prefix, versionId],
          })
    return stored.map(({ row }) => row)
  }
}

function truncateAnswer(message: Message): Message {
  const content = message.content ?? ''
  if (content.length <= answerCharsMax) return message
  const metadata = { ...message.metadata, content_truncated: 'true' }
  return { ...message, content: cutUnits(content, answerCharsMax), metadata }
}
