import type { Citation } from '../../contract/chat.ts'
import type { PassageCheck } from '../../knowledge/passage-visibility.ts'
import type { ChatMessage } from '../../models/chat/completion.ts'
import type { RowStore } from '../../storage/rows.ts'
import { type MessageRow, tables } from '../../storage/tables.ts'
import { type ConversationSummary, summaryIn, withoutSummaryCitation } from './conversation-summary.ts'
import type { StoredConversationKey } from './current-version.ts'
import { isToolCallRow, type PastTurn, splitIntoTurns, toolResponseOf } from './past-turns.ts'
import { countTokens } from './request-budget.ts'
import { areSourcesVisible, type DatedSource, datedSourcesOf, SourceSet } from './sources.ts'
import type { DataTags } from './system-prompt.ts'

export type { ToolResponse } from './past-turns.ts'

/** Maximum number of rows in one page, and their length as JSON. A long answer with tool calls has about ten rows. */
const pageMax = { rows: 100, chars: 1_000_000 }
/**
 * Maximum number of rows to read, and their maximum length as JSON. These limits apply if the token limit does not,
 * because messages are very short or use no tokens, such as failed answers.
 */
const readMax = { rows: 2_000, chars: 8_000_000 }

/**
 * The part of a conversation that the next turn can use. If the caller may not see a source of a turn, the history contains
 * only its question. If it may not see a source of a summary, the history does not contain the summary.
 *
 * @see docs/decisions/0043-sources-of-messages.md
 */
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
  /** Passage with the highest citation number, even if the caller may not see it; undefined if there are no citations. */
  readonly lastCitation: Citation | undefined
  /** Sources of the messages and of the summary; undefined if some are not known. */
  readonly sources: readonly DatedSource[] | undefined
  /** Time of the last message; undefined for an empty conversation. */
  readonly lastAt: string | undefined
}

interface HistoryQuery {
  /** Number of tokens after which no more pages are read. */
  readonly tokens: number
  readonly dataTags: DataTags
  /** Messages to omit. */
  readonly replaced: readonly MessageRow[]
  /** Decides which sources the caller may see. */
  readonly check: PassageCheck
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

  async read({ tokens, dataTags, replaced, check }: HistoryQuery): Promise<History> {
    const replacedIds = new Set(replaced.map(({ messageId }) => messageId))
    let rows: MessageRow[] = []
    let chars = 0
    for (let next = this.newest; ; next = await readPage(this.rows, this.conversationKey, next.rows[0])) {
      rows = [...next.rows.filter(({ messageId }) => !replacedIds.has(messageId)), ...rows]
      chars += next.chars
      const visibleRows = await withVisibleSources(rows, check)
      const history = { ...buildHistory(visibleRows, dataTags), lastCitation: lastCitationIn(rows) }
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
function buildHistory(
  rows: readonly MessageRow[],
  dataTags: DataTags,
): Omit<History, 'lastAt' | 'lastCitation'> {
  const summary = rows.map(summaryIn).findLast(candidate => candidate !== undefined)
  const laterRows = rows.filter(row => row.role !== 'system' && row.messageTs > (summary?.coveredUntil ?? ''))
  const turns = splitIntoTurns(laterRows, dataTags)
  return {
    turns,
    messages: turns.flatMap(turn => turn.messages),
    summary,
    coveredCount: summary?.coveredCount ?? 0,
    citations: rows.flatMap(citationsIn),
    sources: sourcesOfTurns(summary, turns).all,
  }
}

/** Returns the sources of turns and of the summary of earlier ones. */
export function sourcesOfTurns(
  summary: ConversationSummary | undefined,
  turns: readonly PastTurn[],
): SourceSet {
  const sources = new SourceSet()
  if (summary) sources.add(summary.sources)
  for (const row of turns.flatMap(turn => turn.rows).filter(hasSources)) sources.add(datedSourcesOf(row))
  return sources
}

/** Returns true for messages that are derived from sources: tool results and answers. */
function hasSources(row: MessageRow): boolean {
  return row.role === 'tool' || (row.role === 'agent' && !isToolCallRow(row))
}

/**
 * Removes summaries and turns that have a source that the caller may not see. Keeps the questions of these turns. A turn
 * without an answer is removed too, because only answers contain all sources.
 */
async function withVisibleSources(rows: readonly MessageRow[], check: PassageCheck): Promise<MessageRow[]> {
  if (check.seesAll) return [...rows]
  const hidden = new Set<MessageRow>()
  for (const turn of splitAtQuestions(rows)) {
    const derived = turn.filter(row => row.role === 'agent' || row.role === 'tool')
    const decisions = derived.filter(hasSources).map(row => areSourcesVisible(datedSourcesOf(row), check))
    const isVisible =
      derived.some(row => row.role === 'agent' && hasSources(row)) &&
      (await Promise.all(decisions)).every(Boolean)
    if (!isVisible) for (const row of derived) hidden.add(row)
  }
  for (const row of rows)
    if (row.role === 'system' && !(await areSourcesVisible(datedSourcesOf(row), check))) hidden.add(row)
  const visible = rows.filter(row => !hidden.has(row))
  return visible.map(row => ({ ...row, metadata: withoutSummaryCitation(row.metadata) }))
}

/** Splits rows before each question. The first part contains the rows before the first question. */
function splitAtQuestions(rows: readonly MessageRow[]): MessageRow[][] {
  const parts: MessageRow[][] = [[]]
  for (const row of rows)
    if (row.role === 'user') parts.push([row])
    else parts.at(-1)!.push(row)
  return parts
}

/**
 * Returns the passages that a tool found, that an answer cites, or that a summary refers to. If a turn has no tool results,
 * only its answer contains them.
 */
function citationsIn(row: MessageRow): readonly Citation[] {
  const { role, metadata } = row
  if (role === 'agent' && metadata.citations) return JSON.parse(metadata.citations) as Citation[]
  const { lastCitation } = summaryIn(row) ?? {}
  return lastCitation ? [lastCitation] : (toolResponseOf(row)?.passages ?? [])
}

function lastCitationIn(rows: readonly MessageRow[]): Citation | undefined {
  return rows
    .flatMap(citationsIn)
    .reduce<Citation | undefined>(
      (last, citation) => (last && last.number > citation.number ? last : citation),
      undefined,
    )
}
