import { isDelimitedText } from '../../base/delimited-text.ts'
import { documentName, documentTitle } from '../fields/resources.ts'
import type { FoldersOf } from '../ingest/ingested-folders.ts'
import { isMarkdown } from '../ingest/text-types.ts'
import type { Output } from '../terminal/output.ts'
import { displayWidth, pad, plain, plainLine, truncate } from '../terminal/terminal-text.ts'
import { wrapLine } from '../terminal/wrap.ts'
import { type ExcerptLine, type ExcerptSize, excerpt, highlightMatches } from './excerpt.ts'
import { describeWeights, explanationLines } from './explanation-lines.ts'
import type { Passage } from './find-passages.ts'
import { readMarkdown, sectionAt } from './markdown.ts'
import { matchesIn, stemsOf } from './matches.ts'
import { sourceAddress } from './source-address.ts'

const barSteps = 5
/** Values of `ingestParser` for files that were converted to Markdown. */
const convertingParsers: ReadonlySet<unknown> = new Set(['structured', 'docling'])
const excerptLines = 3
/** Maximum width of a card; longer lines are hard to read. */
const widthMax = 100
const widthMin = 24
const indent = '     '

/**
 * Returns the coverage as a bar of five steps. The bar is full only at full coverage, and empty below one
 * fifth. It does not depend on the other results.
 *
 * @param coverage  0 to 1
 * @returns the filled steps, and the empty ones
 */
export function coverageBar(coverage: number): [filled: string, empty: string] {
  const steps = Math.floor(coverage * barSteps)
  return ['▮'.repeat(steps), '▯'.repeat(barSteps - steps)]
}

/** Formats score and coverage as numbers, with the same width on every card. */
export function formatScores({ coverage, score }: Pick<Passage, 'coverage' | 'score'>): string {
  const share = coverage === undefined ? '' : `${Math.floor(coverage * 100)} %`.padStart('  100 %'.length)
  return score.toFixed(4) + share
}

/** Names of knowledge bases by ID, for passages from several knowledge bases. */
export type BaseNames = ReadonlyMap<string, string>

/** Prints passages: as cards in a terminal, as tab-separated lines in a pipe. */
export function printPassages(
  output: Output,
  question: string,
  passages: readonly Passage[],
  { explain, names, foldersOf }: { explain: boolean; names?: BaseNames; foldersOf: FoldersOf },
): void {
  if (!output.interactive) {
    for (const passage of passages) output.result(pipeRow(passage, names))
    return
  }
  const stems = stemsOf(question)
  const explanations = explain ? passages.flatMap(({ explanation }) => explanation ?? []) : []
  const summaries = new Set(explanations.map(describeWeights))
  // Several knowledge bases can have different weights, which the tables show.
  if (summaries.size === 1) {
    const lines = wrapLine(`  ${[...summaries][0]}`, Math.min(widthMax, output.width - 1), 2)
    for (const line of [...lines, '']) output.result(output.style.dim(line))
  }
  for (const passage of passages) {
    printCard(output, { passage, stems, names, explain, foldersOf })
    output.result('')
  }
}

function pipeRow(passage: Passage, names: BaseNames | undefined): string {
  const { number, score, documentId, chunkIndex, document, id, text, knowledgeBaseId } = passage
  const cells = [
    number,
    score,
    documentId ?? id,
    chunkIndex ?? '',
    sourceOf(document) ?? '',
    (document && documentTitle(document)) ?? '',
    text,
    ...(names ? [names.get(knowledgeBaseId) ?? knowledgeBaseId] : []),
  ]
  return cells.map(cell => plainLine(String(cell))).join('\t')
}

/** Contents and options of a card. */
interface Card {
  readonly passage: Passage
  readonly stems: ReadonlySet<string>
  readonly names: BaseNames | undefined
  readonly explain: boolean
  readonly foldersOf: FoldersOf
}

function printCard(output: Output, { passage, stems, names, explain, foldersOf }: Card): void {
  const { style } = output
  const width = Math.max(widthMin, Math.min(widthMax, output.width - 1))
  const number = pad(`[${passage.number}]`, indent.length - 1)
  const scores = scoreColumn(output, passage, explain)
  const titleWidth = width - indent.length - (scores.cells === 0 ? 0 : scores.cells + 2)
  const { lines, section } = excerptWithSection(passage, stems, {
    width: width - indent.length,
    lines: excerptLines,
  })
  const heading = section ? `${passageTitle(passage)} › ${section}` : passageTitle(passage)
  const title = truncate(heading, titleWidth)
  output.result(`${number} ${style.strong(pad(title, titleWidth))}  ${scores.text}`.trimEnd())
  for (const line of lines) output.result(indent + highlightMatches(line, style.mark))
  const address = sourceAddress(passage, foldersOf(passage))
  for (const line of sourceLines(passage, width, names)) output.result(style.dim(line), address)
  const others = (passage.alsoIn ?? []).map(id => names?.get(id) ?? id)
  if (others.length > 0)
    for (const line of wrapLine(`${indent}also in ${plainLine(others.join(', '))}`, width, indent.length))
      output.result(style.dim(line))
  if (!explain || !passage.explanation) return
  output.result('')
  for (const { text, isDim } of explanationLines(passage.explanation, width - indent.length))
    output.result(indent + (isDim ? style.dim(text) : text))
}

/** Returns the text at the end of a card's first line, and its width in cells. */
function scoreColumn({ style }: Pick<Output, 'style'>, passage: Passage, explain: boolean) {
  const numbers = explain ? formatScores(passage) : ''
  if (passage.coverage === undefined) return { text: numbers, cells: numbers.length }
  const [filled, empty] = coverageBar(passage.coverage)
  const bar = (filled && style.good(filled)) + (empty && style.dim(empty))
  const prefix = numbers && `${numbers} `
  return { text: prefix + bar, cells: prefix.length + barSteps }
}

/** Returns an excerpt of a passage, and the title of its section in a Markdown document. */
export function excerptWithSection(
  passage: Passage,
  stems: ReadonlySet<string>,
  size: ExcerptSize,
): { lines: ExcerptLine[]; section?: string } {
  const text = plain(passage.text)
  if (!isMarkdownDocument(passage)) return { lines: excerpt(text, stems, size, rowStarts(text, passage)) }
  const name = passageTitle(passage)
  const readable = readMarkdown(text, name)
  const lines = excerpt(readable.text, stems, size, readable.lineStarts)
  const excerptOffset = lines[0]?.start ?? 0
  const match = matchesIn(readable.text, stems).find(({ start }) => start >= excerptOffset)
  const section = sectionAt(readable, match?.start ?? excerptOffset)
  if (section === undefined) return { lines, section: passageSection(passage, name) }
  if (section.title === name) return { lines }
  if (section.offset !== excerptOffset) return { lines, section: section.title }
  // The card's title already shows this heading. It is replaced by spaces, so that the offsets stay valid.
  const { offset, title } = section
  const { text: fullText, lineStarts } = readable
  const withoutHeading =
    fullText.slice(0, offset) + fullText.slice(offset).replace(/.*/, heading => ' '.repeat(heading.length))
  return { lines: excerpt(withoutHeading, stems, size, lineStarts), section: title }
}

/** Returns the offsets of the rows of a CSV or TSV file; none for other files. */
function rowStarts(text: string, { document }: Pick<Passage, 'document'>): number[] {
  if (!document || !isDelimitedText(document.fileType, document.sourceFilename)) return []
  return [...text.matchAll(/^/gm)].map(({ index }) => index)
}

/** Returns the headings above a passage, without the title of its document; undefined if there are none. */
function passageSection({ section }: Passage, title: string): string | undefined {
  const headings = plainLine(section ?? '').split(' > ')
  const shown = headings[0] === title ? headings.slice(1) : headings
  return shown.join(' › ') || undefined
}

/** Returns true if the document is a Markdown file. */
export function isMarkdownDocument({ document }: Pick<Passage, 'document'>): boolean {
  return convertingParsers.has(document?.metadata.ingestParser) || isMarkdown(sourceOf(document) ?? '')
}

/** Returns the document title of a passage as one line of plain text. */
export function passageTitle({ document, id }: Pick<Passage, 'document' | 'id'>): string {
  return plainLine(document ? documentName(document) : id)
}

/** Returns the file name, the place in the file, and the chunk numbers of a passage. */
export function passageLocation({
  document,
  chunkIndex,
  chunks,
  place,
}: Pick<Passage, 'document' | 'chunkIndex' | 'chunks' | 'place'>): string {
  const source = sourceOf(document)
  const chunk = chunks
    ? `chunks ${chunks.first} to ${chunks.last}`
    : chunkIndex === null
      ? undefined
      : `chunk ${chunkIndex}`
  const parts = [source && plainLine(source), place && plainLine(`${place.kind} ${place.value}`), chunk]
  return parts.filter(Boolean).join(' · ')
}

/**
 * Returns lines with the location and ID of a passage. In a narrow terminal, the ID is on a separate line, so that
 * it can be copied.
 */
function sourceLines(passage: Passage, width: number, names: BaseNames | undefined): string[] {
  const { documentId, id, knowledgeBaseId } = passage
  const location = [names?.get(knowledgeBaseId), passageLocation(passage)].filter(Boolean).join(' · ')
  const shownId = plainLine(documentId ?? id)
  const line = [location, shownId].filter(Boolean).join(' · ')
  if (displayWidth(indent + line) <= width) return [indent + line]
  const idIndent = Math.min(indent.length, Math.max(0, width - shownId.length))
  return [indent + truncate(location, width - indent.length), ' '.repeat(idIndent) + shownId]
}

function sourceOf(document: Passage['document']): string | undefined {
  return document?.sourceFilename ?? document?.sourceDocId ?? undefined
}
