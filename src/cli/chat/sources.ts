import type { Citation } from '../../contract/chat.ts'
import { plainLine } from '../terminal/terminal-text.ts'

/** Where a passage stands, in words: its document, and the place in it. */
export function sourceOf(citation: Citation): string {
  const { title, sourceFilename } = citation
  const name = plainLine(title ?? sourceFilename ?? 'a passage without a document')
  return [name, placeIn(citation)].filter(Boolean).join(' · ')
}

/** The place of a passage in its document; undefined where none is known. */
export function placeIn({ page, chunkIndex }: Pick<Citation, 'page' | 'chunkIndex'>): string | undefined {
  if (page !== null) return `page ${page}`
  return chunkIndex === null ? undefined : `chunk ${chunkIndex}`
}
