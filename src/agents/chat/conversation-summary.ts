import type { Citation } from '../../contract/chat.ts'
import type { MessageRow } from '../../storage/tables.ts'

/** Text that replaces the oldest messages of a conversation. It is stored as a message of the role `system`. */
export interface ConversationSummary {
  readonly text: string
  /** Time of the last message that it covers. */
  readonly through: string
  /** Number of messages that it covers. */
  readonly covered: number
  /** Passage with the highest citation number when the summary was written. Later passages get higher numbers. */
  readonly lastCitation: Citation | undefined
}

/** Returns the summary that a message holds. */
export function summaryIn({ role, content, metadata }: MessageRow): ConversationSummary | undefined {
  const { summary_through: through, summary_messages: covered, summary_citation: citation } = metadata
  if (role !== 'system' || !content || through === undefined) return undefined
  return {
    text: content,
    through,
    covered: Number(covered ?? 0),
    lastCitation: citation === undefined ? undefined : (JSON.parse(citation) as Citation),
  }
}

/** Returns the metadata of the message that holds a summary. */
export function summaryMetadata({ through, covered, lastCitation }: Omit<ConversationSummary, 'text'>) {
  return {
    summary_through: through,
    summary_messages: String(covered),
    ...(lastCitation && { summary_citation: JSON.stringify(lastCitation) }),
  }
}
