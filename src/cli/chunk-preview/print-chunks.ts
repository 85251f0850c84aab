import type { PreviewedChunk } from '../../contract/chunk-preview.ts'
import type { Output } from '../terminal/output.ts'
import { pad, plain, plainLine, truncate } from '../terminal/terminal-text.ts'
import { wrapLine } from '../terminal/wrap.ts'
import type { NamedPreview } from './preview-chunks.ts'

/** Maximum width of a column of text; longer lines are hard to read. */
const columnWidthMax = 90
const columnWidthMin = 20
const gutter = ' │ '
const indent = '  '
/** Number of lines of a part that are shown at its start and its end, if it has more. */
const headLines = 4
const tailLines = 2
/** Number of tokens of a text that the built-in sentence model reads, without those of its start and its end. */
const modelTokens = 254

interface PrintOptions {
  readonly text: string
  readonly previews: readonly NamedPreview[]
  /** True to print the whole text of the chunks. */
  readonly isFull: boolean
}

/** Prints the chunks of each chunker: side by side in a terminal, as tab-separated lines in a pipe. */
export function printChunks(output: Output, { text, previews, isFull }: PrintOptions): void {
  if (!output.interactive) {
    for (const preview of previews)
      for (const [at, chunk] of preview.chunks.entries()) output.result(pipeRow(preview, at, chunk, text))
    return
  }
  for (const line of columnLines(output, { text, previews, isFull })) output.result(line.trimEnd())
}

function pipeRow({ name }: NamedPreview, at: number, chunk: PreviewedChunk, text: string): string {
  const cells = [
    name,
    at + 1,
    chunk.start,
    chunk.end,
    chunk.tokens,
    placeOf(chunk),
    chunk.section ?? '',
    text.slice(chunk.start, chunk.end),
  ]
  return cells.map(cell => plainLine(String(cell))).join('\t')
}

/**
 * Yields the text in one column for each chunker. All columns show the same lines, and a rule where a chunk of their chunker starts.
 */
function* columnLines(output: Output, { text, previews, isFull }: PrintOptions): Generator<string> {
  const { style } = output
  const gutters = gutter.length * (previews.length - 1)
  const room = Math.floor((output.width - 1 - indent.length - gutters) / previews.length)
  const width = Math.max(columnWidthMin, Math.min(columnWidthMax, room))
  const join = (cells: readonly string[]) => indent + cells.join(style.dim(gutter))
  const row = (cells: readonly string[], paint: (text: string) => string) =>
    join(cells.map(cell => paint(pad(truncate(cell, width), width))))
  yield row(
    previews.map(({ name }) => plainLine(name)),
    style.strong,
  )
  yield row(previews.map(summaryOf), style.dim)
  const longest = previews.map(({ chunks }) => chunks.filter(({ tokens }) => tokens > modelTokens).length)
  if (longest.some(count => count > 0))
    yield row(
      longest.map(count => (count > 0 ? `${count} over ${modelTokens} tokens: cut by the model` : '')),
      style.warning,
    )
  for (const { start, end, starting } of partsOf(text, previews)) {
    yield join(
      starting.map((at, column) => {
        if (at === undefined) return ' '.repeat(width)
        return style.dim(pad(rule(previews[column]!, at, width), width))
      }),
    )
    const sections = starting.map((at, column) => (at === undefined ? '' : labelOf(previews[column]!, at)))
    if (sections.some(section => section !== '')) yield row(sections, style.good)
    const lines = textLines(text.slice(start, end), width)
    const isLong = !isFull && lines.length > headLines + tailLines + 1
    for (const line of isLong ? lines.slice(0, headLines) : lines)
      yield row(
        previews.map(() => line),
        String,
      )
    if (!isLong) continue
    const hidden = lines.length - headLines - tailLines
    yield row(
      previews.map(() => `⋯ ${hidden} lines`),
      style.dim,
    )
    for (const line of lines.slice(-tailLines))
      yield row(
        previews.map(() => line),
        String,
      )
  }
  const cut = previews.filter(({ chunks, chunkTotal }) => chunkTotal > chunks.length)
  for (const { name, chunks, chunkTotal } of cut)
    yield style.dim(`${indent}${plainLine(name)}: the first ${chunks.length} of ${chunkTotal} chunks`)
}

/** A part of the text between two starts of chunks, with the index of the chunk of each chunker that starts there. */
interface TextPart {
  readonly start: number
  readonly end: number
  readonly starting: readonly (number | undefined)[]
}

function partsOf(text: string, previews: readonly NamedPreview[]): TextPart[] {
  const starts = new Map<number, (number | undefined)[]>()
  for (const [column, { chunks }] of previews.entries())
    for (const [at, chunk] of chunks.entries()) {
      // The text of an overlap is shown once, in the chunk before.
      const start = Math.max(chunk.start, chunks[at - 1]?.end ?? 0)
      const starting = starts.get(start) ?? previews.map(() => undefined)
      starting[column] = at
      starts.set(start, starting)
    }
  const offsets = [...starts.keys()].sort((a, b) => a - b)
  const last = Math.max(0, ...previews.map(({ chunks }) => chunks.at(-1)?.end ?? 0))
  return offsets.map((start, at) => ({
    start,
    end: offsets[at + 1] ?? Math.min(last, text.length),
    starting: starts.get(start)!,
  }))
}

/** Returns the line above a chunk: its number, size and place, and its overlap with the chunk before. */
function rule({ chunks }: NamedPreview, at: number, width: number): string {
  const chunk = chunks[at]!
  const overlap = Math.max(0, (chunks[at - 1]?.end ?? 0) - chunk.start)
  const details = [
    `${chunk.tokens} tokens`,
    placeOf(chunk),
    overlap > 0 ? `repeats ${overlap} characters` : '',
  ].filter(detail => detail !== '')
  const label = `── ${at + 1} ─ ${details.join(', ')} `
  return truncate(label + '─'.repeat(Math.max(0, width - label.length)), width)
}

/** Returns the section and the column headers of a chunk, which are embedded with it. */
function labelOf({ chunks }: NamedPreview, at: number): string {
  const { section, tableHeads } = chunks[at]!
  return plainLine([section?.replaceAll(' > ', ' › '), tableHeads].filter(Boolean).join(' · '))
}

function placeOf({ page, slide, sheet }: PreviewedChunk): string {
  if (page !== null) return `page ${page}`
  if (slide !== null) return `slide ${slide}`
  return sheet === null ? '' : `sheet ${plainLine(sheet)}`
}

function summaryOf({ chunks, chunkTotal }: NamedPreview): string {
  const sizes = chunks.map(({ tokens }) => tokens).sort((a, b) => a - b)
  const count = `${chunkTotal} ${chunkTotal === 1 ? 'chunk' : 'chunks'}`
  if (sizes.length === 0) return count
  return `${count}, ${sizes[0]}–${sizes.at(-1)} tokens, median ${sizes[Math.floor(sizes.length / 2)]}`
}

function textLines(text: string, width: number): string[] {
  const lines = plain(text).replaceAll('\t', '    ').trimEnd().split('\n')
  while (lines.length > 1 && lines[0]!.trim() === '') lines.shift()
  return lines.flatMap(line => wrapLine(line, width, 0).map(part => truncate(part, width)))
}
