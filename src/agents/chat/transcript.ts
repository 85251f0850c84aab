import type { Clock } from '../../base/clock.ts'
import { newId } from '../../base/id.ts'
import type { KeyedQueue } from '../../base/keyed-queue.ts'
import type { Citation, ToolCall } from '../../contract/chat.ts'
import type { ImageInput } from '../../contract/images.ts'
import { changeRow, type RowChange } from '../../storage/change-row.ts'
import type { RowStore, Write } from '../../storage/rows.ts'
import { type ConversationRow, type MessageRow, type MessageSource, tables } from '../../storage/tables.ts'
import { emptyMessageFields, imageRows, imagesField } from '../messages.ts'
import { conversationNotFound, messageNotFound, requireSameConversation } from '../not-found.ts'
import { checkVersionLimit } from './current-version.ts'
import type { ToolResponse } from './history.ts'
import { switchVersion } from './switch-version.ts'
import { titleFromQuestion } from './title.ts'

/** Dependencies that all turns share. */
export interface TranscriptDependencies {
  readonly rows: RowStore
  readonly clock: Clock
  /** Runs the writes to one conversation in sequence, so that they do not conflict. */
  readonly writes: KeyedQueue
}

/** State of the conversation when the turn starts. */
export interface TranscriptStart {
  /** Time of the last message of the conversation; undefined if it has none. */
  readonly lastAt: string | undefined
  /** ID of the first version of the question, if the turn adds another version. */
  readonly questionId: string | undefined
}

/** A tool result, with the passages that it contains and the documents and records from which it is derived. */
export interface StoredToolResult {
  readonly content: string
  readonly passages: readonly Citation[]
  readonly sources: readonly MessageSource[]
}

/** Fields of a new message. The transcript adds the IDs and the time. */
type TranscriptRow = Pick<MessageRow, 'role' | 'content'> & Partial<MessageRow>

/**
 * Writes the messages of one turn, in order.
 *
 * If the turn adds another version of a question, its messages are stored separately until the answer is complete. Then
 * they replace the current version.
 *
 * @see docs/decisions/0031-message-versions.md
 */
export class Transcript {
  readonly #rows: RowStore
  readonly #clock: Clock
  readonly #writes: KeyedQueue
  readonly #conversation: ConversationRow
  readonly #questionId: string | undefined
  #lastMs: number
  #question: MessageRow | undefined
  /** Title that is derived from the first question, for a conversation without a title. */
  #title: string | null = null
  readonly #isFirst: boolean

  /** @param conversation  as it was read for the turn */
  constructor(deps: TranscriptDependencies, conversation: ConversationRow, start: TranscriptStart) {
    this.#rows = deps.rows
    this.#clock = deps.clock
    this.#writes = deps.writes
    this.#conversation = conversation
    this.#questionId = start.questionId
    this.#isFirst = start.lastAt === undefined
    this.#lastMs = start.lastAt === undefined ? 0 : Date.parse(start.lastAt)
  }

  /**
   * Stores the question with its images.
   *
   * @param isUntrusted  true if text of documents is sent to the model with the question
   * @throws conversation_not_found  the conversation was deleted in the meantime
   * @throws validation_error        the question has the maximum number of versions
   */
  async storeQuestion(
    content: string,
    isUntrusted: boolean,
    images: readonly ImageInput[] = [],
  ): Promise<MessageRow> {
    const questionId = this.#questionId
    const row = this.#createRow({
      role: 'user',
      content,
      ...imagesField(images),
      ...(questionId !== undefined && { questionId }),
    })
    if (this.#isFirst) this.#title = titleFromQuestion(content)
    const imageInserts = imageRows(row, images).map(
      (image): Write => ({ op: 'insert', table: tables.messageImages, row: image }),
    )
    await this.#write(row, imageInserts, isUntrusted)
    this.#question = row
    return row
  }

  /** Records that text of documents is sent to the model, if that was not known when the question was stored. */
  async markUntrusted(): Promise<void> {
    const question = this.#question!
    const isVersion = this.#questionId !== undefined
    const untrusted = { untrustedSince: question.messageTs }
    const row = { ...question, versionId: question.messageId, ...untrusted }
    const writes: Write[] = isVersion ? [{ op: 'replace', table: this.#table, row }] : []
    const change = (conversation: ConversationRow) =>
      isVersion || isUntrustedAt(conversation, question) ? conversation : { ...conversation, ...untrusted }
    await this.#change(change, writes)
  }

  /** Removes the question of a turn that has stored no other message. */
  async removeQuestion(): Promise<void> {
    const key = this.#keyOf(this.#question!)
    const writes: Write[] = [
      { op: 'delete', table: this.#table, key },
      { op: 'deleteAll', table: tables.messageImages, index: 'byMessage', prefix: key },
    ]
    const clearTitle = (row: ConversationRow) =>
      this.#title !== null && row.title === this.#title ? { ...row, title: null } : row
    await this.#change(clearTitle, writes)
  }

  /** Stores tool calls, and the text that the model wrote before them. */
  storeCalls(
    content: string,
    toolCalls: readonly ToolCall[],
    fields: Partial<MessageRow>,
  ): Promise<MessageRow> {
    return this.#appendMessage({ role: 'agent', content, toolCallPayload: { toolCalls }, ...fields })
  }

  /**
   * Stores the result of a call.
   *
   * @param isUntrusted  true if the model has read text of documents or tools, in this turn or an earlier one
   */
  storeResult(
    call: ToolCall,
    { content, passages, sources }: StoredToolResult,
    isUntrusted: boolean,
  ): Promise<MessageRow> {
    const toolResponse: ToolResponse = {
      toolCallId: call.id,
      content,
      ...(passages.length > 0 && { passages }),
    }
    return this.#appendMessage(
      { role: 'tool', content: null, toolId: call.name, toolResponse, sources: [...sources] },
      isUntrusted,
    )
  }

  /**
   * Stores a complete answer, which ends the turn.
   *
   * @throws conversation_not_found  the conversation was deleted in the meantime
   * @throws chat_message_not_found  the question is no longer in the conversation
   */
  async storeAnswer(content: string, fields: Partial<MessageRow>): Promise<MessageRow> {
    const questionId = this.#questionId
    if (questionId === undefined) return this.#appendAnswer(content, fields)
    const answer = this.createAnswerRow(content, fields)
    const { messageId: versionId } = this.#question!
    await this.#enqueue(() =>
      switchVersion(this.#rows, this.#conversation, { questionId, versionId, answer }),
    )
    return answer
  }

  /** Stores the answer of a turn that failed or was interrupted. Does not replace the current version. */
  storeFailedAnswer(content: string, fields: Partial<MessageRow>): Promise<MessageRow> {
    return this.#appendAnswer(content, fields)
  }

  /** Returns the row of an answer without storing it. */
  createAnswerRow(content: string, fields: Partial<MessageRow>): MessageRow {
    return this.#createRow({ role: 'agent', content, authorId: this.#conversation.agentId, ...fields })
  }

  #appendAnswer(content: string, fields: Partial<MessageRow>): Promise<MessageRow> {
    return this.#appendMessage({ role: 'agent', content, authorId: this.#conversation.agentId, ...fields })
  }

  get #table() {
    return this.#questionId === undefined ? tables.messages : tables.messageVersions
  }

  #createRow(message: TranscriptRow): MessageRow {
    this.#lastMs = Math.max(this.#lastMs + 1, this.#clock.now())
    const { workspaceId, conversationId } = this.#conversation
    const messageTs = new Date(this.#lastMs).toISOString()
    return { ...emptyMessageFields, workspaceId, conversationId, messageId: newId(), messageTs, ...message }
  }

  #keyOf({ workspaceId, conversationId, messageId }: MessageRow): string[] {
    return [workspaceId, conversationId, messageId]
  }

  /**
   * Stores a message after the question. Fails if a switch between versions has moved the question to the other table.
   */
  async #appendMessage(message: TranscriptRow, isUntrusted = false): Promise<MessageRow> {
    const row = this.#createRow(message)
    const key = this.#keyOf(this.#question!)
    await this.#write(row, [{ op: 'require', table: this.#table, key }], isUntrusted)
    return row
  }

  /**
   * @throws conversation_not_found  the conversation was deleted in the meantime
   * @throws chat_message_not_found  the question is no longer in its table
   */
  async #write(row: MessageRow, otherWrites: readonly Write[], isUntrusted: boolean): Promise<void> {
    const isVersion = this.#questionId !== undefined
    const question = this.#question ?? row
    const versionId = question.messageId
    const untrusted = isUntrusted && { untrustedSince: question.messageTs }
    const stored = isVersion ? { ...row, versionId, ...(row === question && untrusted) } : row
    const writes: Write[] = [...otherWrites, { op: 'insert', table: this.#table, row: stored }]
    if (isVersion && untrusted && row !== question)
      writes.push({ op: 'replace', table: this.#table, row: { ...question, versionId, ...untrusted } })
    const change = async (conversation: ConversationRow) => {
      if (!isVersion)
        return {
          ...conversation,
          title: conversation.title ?? (row === question ? this.#title : null),
          lastActivityAt: row.messageTs,
          ...(untrusted && !isUntrustedAt(conversation, question) && untrusted),
        }
      // The check runs between reading and writing the conversation, so that concurrent turns cannot exceed the limit.
      if (row === question) await checkVersionLimit(this.#rows, this.#conversation, this.#questionId!)
      return conversation
    }
    const changed = await this.#change(change, writes)
    if ('row' in changed) return
    if ('absent' in changed) throw conversationNotFound(this.#conversation.conversationId)
    throw messageNotFound(versionId)
  }

  /** Changes the conversation in one transaction with `writes`, after all earlier writes to the conversation. */
  #change(
    change: (conversation: ConversationRow) => ConversationRow | Promise<ConversationRow>,
    writes: readonly Write[],
  ): Promise<RowChange<ConversationRow>> {
    const { workspaceId, conversationId } = this.#conversation
    const key = [workspaceId, conversationId]
    const changeSame = (conversation: ConversationRow) => {
      requireSameConversation(conversation, this.#conversation)
      return change(conversation)
    }
    return this.#enqueue(() => changeRow(this.#rows, tables.conversations, key, changeSame, () => writes))
  }

  /**
   * Runs a write after all earlier writes to the conversation. The queue key includes the workspace, because
   * conversation IDs are unique only there.
   */
  #enqueue<T>(write: () => Promise<T>): Promise<T> {
    const { workspaceId, conversationId } = this.#conversation
    return this.#writes.run(`${workspaceId}:${conversationId}`, write)
  }
}

/**
 * Returns true if the conversation row already states that text of documents or tools was read at or before the time of
 * a message. Returns false for a later time, which a concurrent turn can have written.
 */
function isUntrustedAt({ untrustedSince }: ConversationRow, { messageTs }: MessageRow): boolean {
  return Boolean(untrustedSince && untrustedSince <= messageTs)
}
