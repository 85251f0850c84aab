import type { Chunk } from '../../contract/documents.ts'
import { joinChunks, overlapsOf } from './join-chunks.ts'
import { headingsIn, sectionAt, widenToWords } from './markdown.ts'
import type { Span } from './matches.ts'

/** Maximum number of characters to show before and after a passage of a long section. */
const contextCharsMax = 800

/** The text of a document, or its beginning. */
export interface DocumentText {
  readonly text: string
  /** The cited chunk; undefined if none is cited, or it was deleted. */
  readonly cited?: Span
}

/** The part of a document to read. */
export interface DocumentTextOptions {
  /** Index of the cited chunk; undefined if no chunk is cited. */
  readonly chunkIndex: number | undefined
  /** True to read to the end, not only to the end of the context. */
  readonly isWhole: boolean
  /** SHA-256 of the text; null if unknown. */
  readonly contentHash: string | null
}

/** Joins the chunks of a document, which are slices of its text that may overlap. */
export async function joinDocumentText(
  chunks: AsyncIterable<Chunk>,
  { chunkIndex, isWhole, contentHash }: DocumentTextOptions,
): Promise<DocumentText> {
  const read: string[] = []
  let citedAt: number | undefined
  let charsAfter = 0
  let isCut = false
  for await (const { chunkIndex: index, text } of chunks) {
    const chunk = text ?? ''
    // Characters that the chunk has at least beside those of the one before.
    if (citedAt !== undefined) charsAfter += chunk.length - (overlapsOf(read.at(-1)!, chunk)[0] ?? 0)
    else if (index !== null && index === chunkIndex) citedAt = read.length
    read.push(chunk)
    isCut = !isWhole && citedAt !== undefined && charsAfter > contextCharsMax
    if (isCut) break
  }
  const { text, starts } = joinChunks(read, isCut ? null : contentHash)
  if (citedAt === undefined) return { text }
  const start = starts[citedAt]!
  return { text, cited: { start, end: start + read[citedAt]!.length } }
}

/** A passage and its context: the section, or as much of it as fits. */
export interface PassageContext {
  readonly passage: Span
  readonly around: Span
  /** Title of the section that contains most of the passage. */
  readonly section?: string
}

export function findContext(text: string, cited: Span, isMarkdown: boolean): PassageContext {
  const headings = isMarkdown ? headingsIn(text) : []
  const passage = isMarkdown ? widenToWords(text, cited) : cited
  const heading = headings.findLast(({ at }) => at <= passage.start)
  const next = headings.find(({ at }) => at >= passage.end)
  const around = {
    start: Math.max(heading?.at ?? 0, contextStart(text, passage.start)),
    end: Math.min(next?.at ?? text.length, contextEnd(text, passage.end)),
  }
  const section = sectionAt({ headings }, (passage.start + passage.end) / 2)
  return { passage, around, ...(section && { section: section.title }) }
}

/** Separators at which a context can begin or end, best first. */
const breaks = ['\n\n', '\n', ' ']

function contextStart(text: string, start: number): number {
  const from = start - contextCharsMax
  if (from <= 0) return 0
  for (const mark of breaks) {
    const at = text.indexOf(mark, from)
    if (at >= 0 && at < start) return at + mark.length
  }
  return start
}

function contextEnd(text: string, end: number): number {
  const until = end + contextCharsMax
  if (until >= text.length) return text.length
  for (const mark of breaks) {
    const at = text.lastIndexOf(mark, until - mark.length)
    if (at >= end) return at
  }
  return end
}
