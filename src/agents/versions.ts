import { setImmediate as nextTurn } from 'node:timers/promises'
import pMap from 'p-map'
import type { AuthContext } from '../access/subject.ts'
import type { Message, MessageVersion } from '../contract/conversations.ts'
import { WbError } from '../contract/errors.ts'
import type { RowStore } from '../storage/rows.ts'
import { type MessageRow, type MessageVersionRow, tables } from '../storage/tables.ts'
import { questionIdOf, type StoredConversationKey, versionsMax } from './chat/current-version.ts'
import { switchVersion } from './chat/switch-version.ts'
import type { ConversationKey, Conversations } from './conversations.ts'
import { toMessage } from './messages.ts'
import { messageNotFound } from './not-found.ts'
import { truncateText } from './tools/tool-result.ts'
import { isVisible } from './visible-message.ts'

/** Rows that are read at once in search of an answer. */
const answerBatch = { limit: 50, charsMax: 200_000 }
/** Longest answer in a list of versions, in UTF-16 units. A longer one is cut. */
const answerCharsMax = 20_000
/** Versions whose answers are searched for at once. */
const searchedAtOnce = 4

/** Messages of one version, after its question. */
type MessagePosition = Pick<MessageRow, 'messageTs' | 'messageId'> & { readonly versionId?: string }

/** Versions of questions, for callers with access to the conversation. @see docs/decisions/0031-message-versions.md */
export class Versions {
  constructor(private readonly parts: { rows: RowStore; conversations: Pick<Conversations, 'get'> }) {}

  /**
   * Returns all versions of a question, the oldest first. Long answers are cut, and marked by
   * `metadata.content_truncated`.
   *
   * @throws workspace_not_found, conversation_not_found, chat_message_not_found
   */
  async list(place: ConversationKey & { messageId: string }, auth: AuthContext): Promise<MessageVersion[]> {
    const { rows, conversations } = this.parts
    await conversations.get(place, auth)
    const questionId = await questionIdOf(rows, place, place.messageId)
    const query = {
      index: 'byQuestion',
      prefix: [place.workspaceId, place.conversationId, questionId],
      limit: versionsMax,
    }
    const [kept, current, only] = await Promise.all([
      rows.list(tables.messageVersions, query),
      rows.list(tables.messages, query),
      rows.get(tables.messages, [place.workspaceId, place.conversationId, questionId]),
    ])
    const inPlace = current[0]?.row ?? only?.row
    const questions = [...kept.map(({ row }) => row), ...(inPlace ? [inPlace] : [])]
    const versionOf = async (question: MessageRow) => ({
      message: toMessage(question),
      answer: await this.#answerTo(place, question),
      isCurrent: question === inPlace,
    })
    const versions = await pMap(questions, versionOf, { concurrency: searchedAtOnce })
    return versions.sort((a, b) => (a.message.messageTs < b.message.messageTs ? -1 : 1))
  }

  /**
   * Puts a version of a question into the conversation, with all messages that followed it.
   *
   * @throws workspace_not_found, conversation_not_found, chat_message_not_found
   * @throws conflict  no version of the question is in the conversation, or the conversation keeps changing
   */
  async select(place: ConversationKey & { messageId: string }, auth: AuthContext): Promise<Message> {
    const { rows, conversations } = this.parts
    await conversations.get(place, auth)
    const { messageId } = place
    const key = [place.workspaceId, place.conversationId, messageId]
    const kept = await rows.get(tables.messageVersions, key)
    const question = kept?.row ?? (await rows.get(tables.messages, key))?.row
    if (question?.role !== 'user') throw messageNotFound(messageId)
    if (kept) {
      const parentId = await this.#parentOf(kept.row)
      if (parentId !== undefined)
        throw new WbError('conflict', 'another version of an earlier question is in the conversation', {
          hint: `Select version ${parentId} first.`,
        })
      await switchVersion(rows, place, { questionId: kept.row.questionId!, versionId: messageId })
    }
    return toMessage(question)
  }

  /**
   * Returns the version of an earlier question that a version belongs to, if that one is not in the conversation.
   * It is stored with the version of the same question that was in the conversation last.
   */
  async #parentOf({ workspaceId, conversationId, questionId, messageId, versionId }: MessageVersionRow) {
    if (versionId !== messageId) return versionId
    const found = await this.parts.rows.list(tables.messageVersions, {
      index: 'byQuestion',
      prefix: [workspaceId, conversationId, questionId!],
      limit: versionsMax,
    })
    return found.find(({ row }) => row.versionId !== row.messageId)?.row.versionId
  }

  async #answerTo(
    place: StoredConversationKey,
    question: MessageRow | MessageVersionRow,
  ): Promise<Message | null> {
    let last: MessagePosition = question
    for (;;) {
      const batch: MessageRow[] = await this.#messagesAfter(place, last)
      // A summary of earlier turns can be between a question and its answer.
      const next = batch.find(row => row.role === 'user' || (row.role === 'agent' && isVisible(row)))
      if (next) return next.role === 'agent' ? truncateAnswer(toMessage(next)) : null
      if (batch.length === 0) return null
      last = { ...batch.at(-1)!, ...('versionId' in question && { versionId: question.versionId }) }
      // Reads of the store end synchronously, so without this pause many rows would block the event loop.
      await nextTurn()
    }
  }

  async #messagesAfter(
    { workspaceId, conversationId }: StoredConversationKey,
    { versionId, messageTs, messageId }: MessagePosition,
  ): Promise<MessageRow[]> {
    const prefix = [workspaceId, conversationId]
    const query = { after: [messageTs, messageId], ...answerBatch }
    const found =
      versionId === undefined
        ? await this.parts.rows.list(tables.messages, { ...query, index: 'byConversation', prefix })
        : await this.parts.rows.list(tables.messageVersions, {
            ...query,
            index: 'byVersion',
            prefix: [...prefix, versionId],
          })
    return found.map(({ row }) => row)
  }
}

function truncateAnswer(message: Message): Message {
  const content = message.content ?? ''
  if (content.length <= answerCharsMax) return message
  const metadata = { ...message.metadata, content_truncated: 'true' }
  return { ...message, content: truncateText(content, answerCharsMax), metadata }
}
