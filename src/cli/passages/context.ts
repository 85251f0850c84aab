import { overlapsOf } from '../../base/text-overlaps.ts'
import type { Chunk } from '../../contract/documents.ts'
import { joinChunks } from './join-chunks.ts'
import { headingsIn, sectionAt, widenToWords } from './markdown.ts'
import type { TextRange } from './matches.ts'
import { type PassagePlace, placeOf } from './place.ts'

/** Maximum number of characters to show before and after a passage of a long section. */
const contextCharsMax = 800

/** The text of a document, or the first part of it. */
export interface DocumentText {
  readonly text: string
  /** Position of the cited chunk; undefined if no chunk is cited, or it was deleted. */
  readonly cited?: TextRange
  /** Place in the file at which the cited chunk starts; undefined if it has none. */
  readonly place?: PassagePlace | undefined
}

/** The part of a document to read. */
export interface DocumentTextOptions {
  /** Index of the cited chunk; undefined if no chunk is cited. */
  readonly chunkIndex: number | undefined
  /** True to read the whole document, not only up to the end of the context. */
  readonly isWhole: boolean
  /** SHA-256 of the text; null if unknown. */
  readonly contentHash: string | null
}

/** Joins the chunks of a document, which are slices of its text that can overlap. */
export async function joinDocumentText(
  chunks: AsyncIterable<Chunk>,
  { chunkIndex, isWhole, contentHash }: DocumentTextOptions,
): Promise<DocumentText> {
  const texts: string[] = []
  let citedIndex: number | undefined
  let place: PassagePlace | undefined
  let charsAfterCited = 0
  let isCut = false
  for await (const { chunkIndex: index, text, payload } of chunks) {
    const chunk = text ?? ''
    // Subtracts the longest possible overlap, to count only characters that are certainly new.
    if (citedIndex !== undefined) charsAfterCited += chunk.length - (overlapsOf(texts.at(-1)!, chunk)[0] ?? 0)
    else if (index !== null && index === chunkIndex) {
      citedIndex = texts.length
      place = placeOf(payload)
    }
    texts.push(chunk)
    isCut = !isWhole && citedIndex !== undefined && charsAfterCited > contextCharsMax
    if (isCut) break
  }
  const { text, starts } = joinChunks(texts, isCut ? null : contentHash)
  if (citedIndex === undefined) return { text }
  const start = starts[citedIndex]!
  return { text, cited: { start, end: start + texts[citedIndex]!.length }, place }
}

/** A passage, and the part of the document to show with it: its section, or a part of a long section. */
export interface PassageContext {
  readonly passage: TextRange
  readonly context: TextRange
  /** Title of the section that contains most of the passage. */
  readonly section?: string
}

export function findContext(text: string, cited: TextRange, isMarkdown: boolean): PassageContext {
  const headings = isMarkdown ? headingsIn(text) : []
  const passage = isMarkdown ? widenToWords(text, cited) : cited
  const heading = headings.findLast(({ offset }) => offset <= passage.start)
  const next = headings.find(({ offset }) => offset >= passage.end)
  const context = {
    start: Math.max(heading?.offset ?? 0, contextStart(text, passage.start)),
    end: Math.min(next?.offset ?? text.length, contextEnd(text, passage.end)),
  }
  const section = sectionAt({ headings }, (passage.start + passage.end) / 2)
  return { passage, context, ...(section && { section: section.title }) }
}

/** Separators at which a context can start or end, the best one first. */
const separators = ['\n\n', '\n', ' ']

function contextStart(text: string, start: number): number {
  const earliest = start - contextCharsMax
  if (earliest <= 0) return 0
  for (const separator of separators) {
    const index = text.indexOf(separator, earliest)
    if (index >= 0 && index < start) return index + separator.length
  }
  return start
}

function contextEnd(text: string, end: number): number {
  const latest = end + contextCharsMax
  if (latest >= text.length) return text.length
  for (const separator of separators) {
    const index = text.lastIndexOf(separator, latest - separator.length)
    if (index >= end) return index
  }
  return end
}
