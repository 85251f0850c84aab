import type { Clock } from '../../base/clock.ts'
import { newId } from '../../base/id.ts'
import type { Citation, ToolCall } from '../../contract/chat.ts'
import type { RowStore } from '../../storage/rows.ts'
import { type MessageRow, tables } from '../../storage/tables.ts'
import { conversationNotFound, messageNotFound } from '../missing.ts'
import type { ToolResponse } from './history.ts'

/** The conversation that is written to, and who answers in it. */
export interface TranscriptPlace {
  readonly workspaceId: string
  readonly agentId: string
  readonly conversationId: string
}

/** A row as it is said; the rest is added where it is written. */
type Said = Pick<MessageRow, 'role' | 'content'> & Partial<MessageRow>

const silent = {
  tokenCount: null,
  metadata: {},
  authorId: null,
  toolId: null,
  toolCallPayload: null,
  toolResponse: null,
}

/** Writes the messages of one turn, each when it was said and not before the one before it. */
export class Transcript {
  readonly #rows: RowStore
  readonly #clock: Clock
  readonly #place: TranscriptPlace
  #lastMs: number

  /** @param lastAt  when the last message of the conversation was said */
  constructor(parts: { rows: RowStore; clock: Clock }, place: TranscriptPlace, lastAt: string | undefined) {
    this.#rows = parts.rows
    this.#clock = parts.clock
    this.#place = place
    this.#lastMs = lastAt === undefined ? 0 : Date.parse(lastAt)
  }

  /** @param replaced  rows that go in the same unit */
  user(content: string, replaced: readonly MessageRow[]): Promise<MessageRow> {
    return this.#write(this.#row({ role: 'user', content }), replaced)
  }

  /** Take a question back, as if it had never been asked. */
  async withdraw({ workspaceId, conversationId, messageId }: MessageRow, replaced: readonly MessageRow[]) {
    await this.#rows.atomic([
      { op: 'delete', table: tables.messages, key: [workspaceId, conversationId, messageId] },
      ...replaced.map(row => ({ op: 'insert' as const, table: tables.messages, row })),
    ])
  }

  /** Calls of tools, and what the model said before them. */
  calls(content: string, toolCalls: readonly ToolCall[], spoken: Partial<MessageRow>): Promise<MessageRow> {
    return this.#write(this.#row({ role: 'agent', content, toolCallPayload: { toolCalls }, ...spoken }))
  }

  /** What a call gave. */
  result(call: ToolCall, content: string, passages: readonly Citation[]): Promise<MessageRow> {
    const toolResponse: ToolResponse = {
      toolCallId: call.id,
      content,
      ...(passages.length > 0 && { passages }),
    }
    return this.#write(this.#row({ role: 'tool', content: null, toolId: call.name, toolResponse }))
  }

  /** The end of the turn. */
  answer(content: string, spoken: Partial<MessageRow>): Promise<MessageRow> {
    return this.#write(this.answerRow(content, spoken))
  }

  /** The same, which nobody keeps. */
  answerRow(content: string, spoken: Partial<MessageRow>): MessageRow {
    return this.#row({ role: 'agent', content, authorId: this.#place.agentId, ...spoken })
  }

  #row(said: Said): MessageRow {
    this.#lastMs = Math.max(this.#lastMs + 1, this.#clock.now())
    const { workspaceId, conversationId } = this.#place
    const messageTs = new Date(this.#lastMs).toISOString()
    return { ...silent, workspaceId, conversationId, messageId: newId(), messageTs, ...said }
  }

  /**
   * @throws conversation_not_found   it was deleted meanwhile
   * @throws chat_message_not_found   a message that is replaced was deleted meanwhile
   */
  async #write(row: MessageRow, replaced: readonly MessageRow[] = []): Promise<MessageRow> {
    const { workspaceId, conversationId } = this.#place
    const outcome = await this.#rows.atomic([
      { op: 'require', table: tables.conversations, key: [workspaceId, conversationId] },
      ...replaced.map(({ messageId }) => ({
        op: 'delete' as const,
        table: tables.messages,
        key: [workspaceId, conversationId, messageId],
      })),
      { op: 'insert', table: tables.messages, row },
    ])
    if (outcome.ok) return row
    if (outcome.at === 0) throw conversationNotFound(conversationId)
    throw messageNotFound(replaced[outcome.at - 1]!.messageId)
  }
}
