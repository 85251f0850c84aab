import type { Citation, ToolCall } from '../../contract/chat.ts'
import type { ChatMessage } from '../../models/chat/completion.ts'
import type { RowStore } from '../../storage/rows.ts'
import { type MessageRow, tables } from '../../storage/tables.ts'
import type { Marks } from './prompt.ts'

/** Maximum number of rows to read, and of messages to send to the model. @see docs/agents.md#what-the-model-is-told */
const rowsRead = 200
const messagesKept = 16
/** Of the rows, as JSON; far more than a model is told. */
const charsRead = 16_000_000

/** What a tool gave, as it is stored with the turn. */
export interface ToolResponse {
  readonly toolCallId: string
  readonly content: string
  /** Passages that it found. */
  readonly passages?: readonly Citation[]
}

/** What was said before, as far as a model is told it. */
export interface History {
  readonly messages: readonly ChatMessage[]
  /** Older ones that are not told. */
  readonly dropped: number
  /** Passages that tools found, or that answers cite. */
  readonly citations: readonly Citation[]
  /** When the last message was said; none when nothing was. */
  readonly lastAt: string | undefined
}

/**
 * The latest messages of a conversation, for its next turn.
 *
 * @param replaced  messages that are not told any more
 */
export async function readHistory(
  rows: RowStore,
  place: { workspaceId: string; conversationId: string },
  marks: Marks,
  replaced: readonly MessageRow[],
): Promise<History> {
  const stored = await rows.list(tables.messages, {
    index: 'byConversation',
    prefix: [place.workspaceId, place.conversationId],
    limit: rowsRead,
    charsMax: charsRead,
    descending: true,
  })
  const gone = new Set(replaced.map(({ messageId }) => messageId))
  const all = stored
    .map(({ row }) => row)
    .filter(({ messageId }) => !gone.has(messageId))
    .reverse()
  const told = all.filter(isTold)
  const kept = paired(told.slice(-messagesKept))
  return {
    messages: answered(kept.map(row => messageOf(row, marks))),
    dropped: told.length - kept.length,
    citations: all.flatMap(row => responseIn(row)?.passages ?? citationsIn(row)),
    lastAt: stored[0]?.row.messageTs,
  }
}

/** Answers that failed, and those without a word, are not worth telling. */
function isTold(row: MessageRow): boolean {
  if (row.role === 'system') return false
  if (row.role === 'tool' || callsIn(row).length > 0) return true
  return row.metadata.finish_reason !== 'error' && Boolean(row.content)
}

/**
 * A call without its results, a result without its call and a second one would be refused by providers. Two turns of a
 * conversation at once leave all of these.
 */
function paired(rows: readonly MessageRow[]): MessageRow[] {
  const kept: MessageRow[] = []
  for (let at = 0; at < rows.length; at++) {
    const row = rows[at]!
    const after = resultsAfter(rows, at)
    const results = callsIn(row).map(({ id }) => after.find(result => responseIn(result)?.toolCallId === id))
    if (row.role !== 'tool' && results.every(result => result !== undefined)) kept.push(row, ...results)
    at += after.length
  }
  return kept
}

function resultsAfter(rows: readonly MessageRow[], at: number): MessageRow[] {
  const end = rows.findIndex((row, place) => place > at && row.role !== 'tool')
  return rows.slice(at + 1, end === -1 ? rows.length : end)
}

function messageOf(row: MessageRow, marks: Marks): ChatMessage {
  const response = responseIn(row)
  if (response)
    return {
      role: 'tool',
      toolCallId: response.toolCallId,
      content: marks.around(row.toolId ?? '', response.content),
    }
  const toolCalls = callsIn(row)
  if (row.role === 'user') return { role: 'user', content: row.content ?? '' }
  return { role: 'assistant', content: row.content, ...(toolCalls.length > 0 && { toolCalls }) }
}

/**
 * Some providers take questions and answers by turns only, and a model that is told two questions answers both. A turn
 * that failed, was interrupted or goes on beside this one has told no answer.
 */
function answered(messages: readonly ChatMessage[]): ChatMessage[] {
  return messages.flatMap((message, at) => {
    const isLeft = message.role === 'user' && (messages[at + 1]?.role ?? 'user') === 'user'
    return isLeft ? [message, noAnswer] : [message]
  })
}

const noAnswer: ChatMessage = { role: 'assistant', content: '[This has no answer.]' }

/** Passages that an answer cites. Without tools, no other row holds them. */
function citationsIn({ role, metadata }: MessageRow): readonly Citation[] {
  return role === 'agent' && metadata.citations ? (JSON.parse(metadata.citations) as Citation[]) : []
}

function callsIn({ toolCallPayload }: MessageRow): readonly ToolCall[] {
  return (toolCallPayload as { toolCalls?: ToolCall[] } | null)?.toolCalls ?? []
}

function responseIn({ role, toolResponse }: MessageRow): ToolResponse | undefined {
  return role === 'tool' ? ((toolResponse as ToolResponse | null) ?? undefined) : undefined
}
