import type { Chunk } from '../../contract/documents.ts'
import { joinChunks, overlapsOf } from './join-chunks.ts'
import { headingsIn, sectionAt, widenToWords } from './markdown.ts'
import type { Span } from './matches.ts'

/** Maximum number of characters to show before and after a passage of a long section. */
const contextCharsMax = 800

/** The text of a document, or the first part of it. */
export interface DocumentText {
  readonly text: string
  /** Position of the cited chunk; undefined if no chunk is cited, or it was deleted. */
  readonly cited?: Span
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
  let citedAt: number | undefined
  let charsAfter = 0
  let isCut = false
  for await (const { chunkIndex: index, text } of chunks) {
    const chunk = text ?? ''
    // Counts only the characters that certainly do not overlap the chunk before.
    if (citedAt !== undefined) charsAfter += chunk.length - (overlapsOf(texts.at(-1)!, chunk)[0] ?? 0)
    else if (index !== null && index === chunkIndex) citedAt = texts.length
    texts.push(chunk)
    isCut = !isWhole && citedAt !== undefined && charsAfter > contextCharsMax
    if (isCut) break
  }
  const { text, starts } = joinChunks(texts, isCut ? null : contentHash)
  if (citedAt === undefined) return { text }
  const start = starts[citedAt]!
  return { text, cited: { start, end: start + texts[citedAt]!.length } }
}

/** A passage, and the part of the document to show with it: its section, or the part of the section that fits. */
export interface PassageContext {
  readonly passage: Span
  readonly context: Span
  /** Title of the section that contains most of the passage. */
  readonly section?: string
}

export function findContext(text: string, cited: Span, isMarkdown: boolean): PassageContext {
  const headings = isMarkdown ? headingsIn(text) : []
  const passage = isMarkdown ? widenToWords(text, cited) : cited
  const heading = headings.findLast(({ offset }) => offset <= passage.start)
  const next = headings.find(({ offset }) => offset >= passage.end)
  const around = {
    start: Math.max(heading?.offset ?? 0, contextStart(text, passage.start)),
    end: Math.min(next?.offset ?? text.length, contextEnd(text, passage.end)),
  }
  const section = sectionAt({ headings }, (passage.start + passage.end) / 2)
  return { passage, context: around, ...(section && { section: section.title }) }
}

/** Separators at which a context can start or end, the best one first. */
const separators = ['\n\n', '\n', ' ']

function contextStart(text: string, start: number): number {
  const from = start - contextCharsMax
  if (from <= 0) return 0
  for (const separator of separators) {
    const at = text.indexOf(separator, from)
    if (at >= 0 && at < start) return at + separator.length
  }
  return start
}

function contextEnd(text: string, end: number): number {
  const until = end + contextCharsMax
  if (until >= text.length) return text.length
  for (const separator of separators) {
    const at = text.lastIndexOf(separator, until - separator.length)
    if (at >= end) return at
  }
  return end
}
