import type { Citation, ToolCall } from '../../contract/chat.ts'
import type { ChatMessage } from '../../models/chat/completion.ts'
import type { MessageRow } from '../../storage/tables.ts'
import { textWithoutImages } from './image-notes.ts'
import type { DataTags } from './system-prompt.ts'

/** A tool result, in the form in which it is stored. */
export interface ToolResponse {
  readonly toolCallId: string
  readonly content: string
  /** Passages that the call found. */
  readonly passages?: readonly Citation[]
}

/** An earlier question with its tool calls, their results, and its answer. */
export interface PastTurn {
  /** Stored rows, oldest first; the first one is the question. */
  readonly rows: readonly MessageRow[]
  /**
   * Messages for the model: a user message, tool calls followed by their results, and one answer. A note replaces the
   * images of the question.
   */
  readonly messages: readonly ChatMessage[]
}

const noAnswer = '[This question has no answer.]'

/**
 * Splits rows into turns that every chat template accepts: user and assistant messages alternate, and each call is
 * followed by its result. Omits rows before the first question. The rows of concurrent turns can be interleaved, so
 * calls without results and results without calls are omitted, and several answers are joined.
 *
 * @param rows  of one conversation, oldest first
 */
export function splitIntoTurns(rows: readonly MessageRow[], dataTags: DataTags): PastTurn[] {
  const turns: MessageRow[][] = []
  for (const row of rows)
    if (row.role === 'user') turns.push([row])
    else turns.at(-1)?.push(row)
  return turns.map(turn => ({ rows: turn, messages: messagesOf(turn, dataTags) }))
}

function messagesOf([question, ...rest]: readonly MessageRow[], dataTags: DataTags): ChatMessage[] {
  const answers = rest.filter(isAnswer).map(row => row.content)
  return [
    { role: 'user', content: textWithoutImages(question!.content ?? '', question!.images?.length ?? 0) },
    ...exchangesIn(rest, dataTags),
    { role: 'assistant', content: answers.join('\n\n') || noAnswer },
  ]
}

/** Returns true for an answer to send to the model; failed and empty answers are not sent. */
function isAnswer(row: MessageRow): boolean {
  const isFinalText = row.role === 'agent' && !isToolCallRow(row)
  return isFinalText && row.metadata.finish_reason !== 'error' && Boolean(row.content)
}

function exchangesIn(rows: readonly MessageRow[], dataTags: DataTags): ChatMessage[] {
  return rows.flatMap((row, at): ChatMessage[] => {
    const toolCalls = callsIn(row)
    if (toolCalls.length === 0) return []
    const after = resultsAfter(rows, at)
    const results = toolCalls.map(({ id }) => after.find(result => toolResponseOf(result)!.toolCallId === id))
    if (!results.every(result => result !== undefined)) return []
    return [
      { role: 'assistant', content: row.content, toolCalls },
      ...results.map(result => resultMessage(result, dataTags)),
    ]
  })
}

function resultsAfter(rows: readonly MessageRow[], at: number): MessageRow[] {
  const end = rows.findIndex((row, index) => index > at && row.role !== 'tool')
  return rows.slice(at + 1, end === -1 ? rows.length : end).filter(row => toolResponseOf(row) !== undefined)
}

function resultMessage(row: MessageRow, dataTags: DataTags): ChatMessage {
  const { toolCallId, content } = toolResponseOf(row)!
  return { role: 'tool', toolCallId, content: dataTags.enclose(row.toolId ?? '', content) }
}

/** Returns true for a row that contains tool calls. */
export function isToolCallRow(row: MessageRow): boolean {
  return callsIn(row).length > 0
}

function callsIn({ toolCallPayload }: MessageRow): readonly ToolCall[] {
  return (toolCallPayload as { toolCalls?: ToolCall[] } | null)?.toolCalls ?? []
}

/** Returns the tool result that a row contains; undefined for other rows. */
export function toolResponseOf({ role, toolResponse }: MessageRow): ToolResponse | undefined {
  return role === 'tool' ? ((toolResponse as ToolResponse | null) ?? undefined) : undefined
}
