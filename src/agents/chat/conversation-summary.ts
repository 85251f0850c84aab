import type { Citation } from '../../contract/chat.ts'
import type { MessageRow } from '../../storage/tables.ts'
import { type DatedSource, datedSourcesOf } from './sources.ts'

/** A text that replaces the oldest messages of a conversation. Stored as a message with the role `system`. */
export interface ConversationSummary {
  readonly text: string
  /** Time of the last message that the summary covers. */
  readonly coveredUntil: string
  /** Number of messages that the summary covers. */
  readonly coveredCount: number
  /** Passage that had the highest citation number when the summary was written. New passages get higher numbers. */
  readonly lastCitation: Citation | undefined
  /** Sources of the text; undefined if some are not known. */
  readonly sources: readonly DatedSource[] | undefined
}

/** Returns the summary that a message contains; undefined for other messages. */
export function summaryIn(row: MessageRow): ConversationSummary | undefined {
  const { role, content, metadata } = row
  const {
    summary_through: coveredUntil,
    summary_messages: coveredCount,
    summary_citation: citation,
  } = metadata
  if (role !== 'system' || !content || coveredUntil === undefined) return undefined
  return {
    text: content,
    coveredUntil,
    coveredCount: Number(coveredCount ?? 0),
    lastCitation: citation === undefined ? undefined : (JSON.parse(citation) as Citation),
    sources: datedSourcesOf(row),
  }
}

/**
 * Returns the metadata of a summary without its passage. Its document is not always a source of the summary, and can have
 * been deleted before the summary was written, so a check of its visibility is not reliable.
 */
export function withoutSummaryCitation(metadata: MessageRow['metadata']): MessageRow['metadata'] {
  const { summary_citation: _, ...others } = metadata
  return others
}

/** Returns the metadata of a message that contains a summary. */
export function summaryMetadata({
  coveredUntil,
  coveredCount,
  lastCitation,
}: Omit<ConversationSummary, 'text' | 'sources'>) {
  return {
    summary_through: coveredUntil,
    summary_messages: String(coveredCount),
    ...(lastCitation && { summary_citation: JSON.stringify(lastCitation) }),
  }
}
