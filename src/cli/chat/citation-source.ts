import type { Citation } from '../../contract/chat.ts'
import { plainLine } from '../terminal/terminal-text.ts'

/** Returns the source of a citation: the document, and the page or chunk. */
export function citationSource(citation: Citation): string {
  const { title, sourceFilename } = citation
  const name = plainLine(title ?? sourceFilename ?? 'a passage without a document')
  return [name, citationLocation(citation)].filter(Boolean).join(' · ')
}

/** Returns the page or chunk of a passage; undefined if unknown. */
export function citationLocation({
  page,
  chunkIndex,
}: Pick<Citation, 'page' | 'chunkIndex'>): string | undefined {
  if (page !== null) return `page ${page}`
  return chunkIndex === null ? undefined : `chunk ${chunkIndex}`
}
