import type { Citation } from '../../contract/chat.ts'
import type { MessageRow } from '../../storage/tables.ts'

/** Text that replaces the oldest messages of a conversation. It is stored as a message of the role `system`. */
export interface Summary {
  readonly text: string
  /** Time of the last message that it covers. */
  readonly through: string
  /** Number of messages that it covers. */
  readonly covered: number
  /** True if it covers text of documents or tools, or answers that can derive from it. */
  readonly hasRead: boolean
  /** The passage with the highest number at the time of the summary; numbering continues after it. */
  readonly lastCitation: Citation | undefined
}

/** Returns the summary that a message holds. */
export function summaryIn({ role, content, metadata }: MessageRow): Summary | undefined {
  const { summary_through: through, summary_messages: covered, summary_citation: citation } = metadata
  if (role !== 'system' || !content || through === undefined) return undefined
  return {
    text: content,
    through,
    covered: Number(covered ?? 0),
    hasRead: metadata.summary_reads === 'true',
    lastCitation: citation === undefined ? undefined : (JSON.parse(citation) as Citation),
  }
}

/** Returns the metadata of the message that holds a summary. */
export function summaryMetadata({ through, covered, hasRead, lastCitation }: Omit<Summary, 'text'>) {
  return {
    summary_through: through,
    summary_messages: String(covered),
    ...(hasRead && { summary_reads: 'true' }),
    ...(lastCitation && { summary_citation: JSON.stringify(lastCitation) }),
  }
}
