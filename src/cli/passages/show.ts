import { isMarkdown } from '../ingest/text-types.ts'
import { documentName } from '../shown/resources.ts'
import type { Output } from '../terminal/output.ts'
import { displayWidth, pad, plain, plainLine, truncate } from '../terminal/terminal-text.ts'
import { type ExcerptLine, excerpt, marked, type Room } from './excerpt.ts'
import type { Passage } from './hits.ts'
import { readMarkdown, sectionAt } from './markdown.ts'
import { matchesIn, stemsOf } from './matches.ts'

const barSteps = 5
const excerptLines = 3
/** Longer lines are hard to read. */
const widthMax = 100
const widthMin = 24
const indent = '     '

/**
 * A score as a bar of five steps, relative to the best: fused scores mean nothing else. Nothing of the question is in what
 * scores nothing.
 */
export function scoreBar(score: number, best: number): string {
  const filled = score > 0 ? Math.min(barSteps, Math.max(1, Math.round((score / best) * barSteps))) : 0
  return '▮'.repeat(filled) + '▯'.repeat(barSteps - filled)
}

/** Names of knowledge bases by id, where passages come from several. */
export type BaseNames = ReadonlyMap<string, string>

/** Passages: cards in a terminal, tab-separated lines in a pipe. */
export function showPassages(
  output: Output,
  question: string,
  passages: readonly Passage[],
  { explain, names }: { explain: boolean; names?: BaseNames },
): void {
  if (!output.interactive) {
    for (const passage of passages) output.result(row(passage, names))
    return
  }
  const best = passages[0]?.score ?? 0
  const stems = stemsOf(question)
  for (const passage of passages) {
    const numbers = explain ? ` ${passage.score.toFixed(4)}` : ''
    for (const line of card(output, { passage, stems, names }, scoreBar(passage.score, best) + numbers))
      output.result(line)
    output.result('')
  }
}

function row(passage: Passage, names: BaseNames | undefined): string {
  const { number, score, documentId, chunkIndex, document, id, text, knowledgeBaseId } = passage
  const cells = [
    number,
    score,
    documentId ?? id,
    chunkIndex ?? '',
    sourceOf(document) ?? '',
    titleOf(document) ?? '',
    text,
    ...(names ? [names.get(knowledgeBaseId) ?? knowledgeBaseId] : []),
  ]
  return cells.map(cell => plainLine(String(cell))).join('\t')
}

interface Card {
  readonly passage: Passage
  readonly stems: ReadonlySet<string>
  readonly names: BaseNames | undefined
}

function* card(output: Output, { passage, stems, names }: Card, bar: string): Generator<string> {
  const { style } = output
  const width = Math.max(widthMin, Math.min(widthMax, output.width - 1))
  const number = pad(`[${passage.number}]`, indent.length - 1)
  const room = width - indent.length - displayWidth(bar) - 2
  const { lines, section } = said(passage, stems, { width: width - indent.length, lines: excerptLines })
  const title = truncate(section ? `${nameOf(passage)} › ${section}` : nameOf(passage), room)
  yield `${number} ${style.strong(pad(title, room))}  ${style.good(bar)}`
  for (const line of lines) yield indent + marked(line, style.mark)
  for (const line of sourceLines(passage, width, names)) yield style.dim(line)
}

/** What is shown of a passage, and the section that it stands in where it is Markdown. */
export function said(
  passage: Passage,
  stems: ReadonlySet<string>,
  room: Room,
): { lines: ExcerptLine[]; section?: string } {
  const text = plain(passage.text)
  if (!isOfMarkdown(passage)) return { lines: excerpt(text, stems, room) }
  const name = nameOf(passage)
  const readable = readMarkdown(text, name)
  const lines = excerpt(readable.text, stems, room)
  const from = lines[0]?.start ?? 0
  const match = matchesIn(readable.text, stems).find(({ start }) => start >= from)
  const section = sectionAt(readable, match?.start ?? from)
  return { lines, section: section === name ? undefined : section }
}

/** Whether a passage is of a file in Markdown. */
export function isOfMarkdown({ document }: Passage): boolean {
  return isMarkdown(sourceOf(document) ?? '')
}

/** What the document of a passage is called, fit for a terminal. */
export function nameOf({ document, id }: Passage): string {
  return plainLine(document ? documentName(document) : id)
}

/** Where a passage stands: the file and the chunk. */
export function placeOf({ document, chunkIndex }: Passage): string {
  const source = sourceOf(document)
  const place = [source && plainLine(source), chunkIndex === null ? undefined : `chunk ${chunkIndex}`]
  return place.filter(Boolean).join(' · ')
}

/** The same with the id. A narrow terminal has that on a line of its own, so that it can be copied whole. */
function sourceLines(passage: Passage, width: number, names: BaseNames | undefined): string[] {
  const { documentId, id, knowledgeBaseId } = passage
  const words = [names?.get(knowledgeBaseId), placeOf(passage)].filter(Boolean).join(' · ')
  const known = plainLine(documentId ?? id)
  const whole = [words, known].filter(Boolean).join(' · ')
  if (displayWidth(indent + whole) <= width) return [indent + whole]
  const beside = Math.min(indent.length, Math.max(0, width - known.length))
  return [indent + truncate(words, width - indent.length), ' '.repeat(beside) + known]
}

function sourceOf(document: Passage['document']): string | undefined {
  return document?.sourceFilename ?? document?.sourceDocId ?? undefined
}

function titleOf(document: Passage['document']): string | undefined {
  return typeof document?.metadata.title === 'string' ? document.metadata.title : undefined
}
