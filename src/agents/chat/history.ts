import type { Citation } from '../../contract/chat.ts'
import type { ChatMessage } from '../../models/chat/completion.ts'
import type { RowStore } from '../../storage/rows.ts'
import { type MessageRow, tables } from '../../storage/tables.ts'
import { type ConversationSummary, summaryIn } from './conversation-summary.ts'
import type { StoredConversationKey } from './current-version.ts'
import { type PastTurn, splitIntoTurns, toolResponseOf } from './past-turns.ts'
import { countTokens } from './request-budget.ts'
import type { DataTags } from './system-prompt.ts'

export type { ToolResponse } from './past-turns.ts'

/** Maximum number of rows in one page, and their length as JSON. A long answer with tool calls has about ten rows. */
const pageMax = { rows: 100, chars: 1_000_000 }
/**
 * Maximum number of rows to read, and their maximum length as JSON. These limits apply if the token limit does not,
 * because messages are very short or use no tokens, such as failed answers.
 */
const readMax = { rows: 2_000, chars: 8_000_000 }

/** The part of a conversation that the next turn can use. */
export interface History {
  /** Messages of whole turns, oldest first. */
  readonly messages: readonly ChatMessage[]
  readonly turns: readonly PastTurn[]
  /** Summary of older messages. */
  readonly summary: ConversationSummary | undefined
  /** Number of older messages that the summary covers; 0 without a summary. */
  readonly coveredCount: number
  /** Passages that tools found, or that answers cite. */
  readonly citations: readonly Citation[]
  /** Time of the last message; undefined for an empty conversation. */
  readonly lastAt: string | undefined
}

interface HistoryQuery {
  /** Number of tokens after which no more pages are read. */
  readonly tokens: number
  readonly dataTags: DataTags
  /** Messages to omit. */
  readonly replaced: readonly MessageRow[]
}

/** Opens the history of a conversation and reads its newest page. */
export async function openHistory(
  rows: RowStore,
  conversationKey: StoredConversationKey,
): Promise<HistoryReader> {
  return new HistoryReader(rows, conversationKey, await readPage(rows, conversationKey))
}

/** Reads the newest turns of a conversation, page by page, back to its latest summary. */
export class HistoryReader {
  constructor(
    private readonly rows: RowStore,
    private readonly conversationKey: StoredConversationKey,
    private readonly newest: HistoryPage,
  ) {}

  async read({ tokens, dataTags, replaced }: HistoryQuery): Promise<History> {
    const replacedIds = new Set(replaced.map(({ messageId }) => messageId))
    let rows: MessageRow[] = []
    let chars = 0
    for (let next = this.newest; ; next = await readPage(this.rows, this.conversationKey, next.rows[0])) {
      rows = [...next.rows.filter(({ messageId }) => !replacedIds.has(messageId)), ...rows]
      chars += next.chars
      const history = buildHistory(rows, dataTags)
      const isCovered =
        history.summary && next.rows.some(row => row.messageTs <= history.summary!.coveredUntil)
      const isLong = rows.length >= readMax.rows || chars >= readMax.chars
      const isEnough = isCovered || isLong || countTokens(history.messages) > tokens
      if (next.isLast || isEnough) return { ...history, lastAt: this.newest.rows.at(-1)?.messageTs }
    }
  }
}

/** One page of stored messages, oldest first. */
interface HistoryPage {
  readonly rows: readonly MessageRow[]
  readonly chars: number
  readonly isLast: boolean
}

async function readPage(
  rows: RowStore,
  { workspaceId, conversationId }: StoredConversationKey,
  before?: MessageRow,
): Promise<HistoryPage> {
  const stored = await rows.list(tables.messages, {
    index: 'byConversation',
    prefix: [workspaceId, conversationId],
    ...(before && { after: [before.messageTs, before.messageId] }),
    limit: pageMax.rows,
    charsMax: pageMax.chars,
    descending: true,
  })
  const chars = stored.reduce((sum, { text }) => sum + text.length, 0)
  return {
    rows: stored.map(({ row }) => row).reverse(),
    chars,
    isLast: stored.length < pageMax.rows && chars <= pageMax.chars,
  }
}

/** @param rows  oldest first */
function buildHistory(rows: readonly MessageRow[], dataTags: DataTags): Omit<History, 'lastAt'> {
  const summary = rows.map(summaryIn).findLast(candidate => candidate !== undefined)
  const laterRows = rows.filter(row => row.role !== 'system' && row.messageTs > (summary?.coveredUntil ?? ''))
  const turns = splitIntoTurns(laterRows, dataTags)
  const citedPassages = rows.flatMap(row => toolResponseOf(row)?.passages ?? citationsIn(row))
  return {
    turns,
    messages: turns.flatMap(turn => turn.messages),
    summary,
    coveredCount: summary?.coveredCount ?? 0,
    citations: summary?.lastCitation ? [summary.lastCitation, ...citedPassages] : citedPassages,
  }
}

/** Returns the passages that an answer cites. If the turn has no tool results, only the answer contains them. */
function citationsIn({ role, metadata }: MessageRow): readonly Citation[] {
  return role === 'agent' && metadata.citations ? (JSON.parse(metadata.citations) as Citation[]) : []
}
