import { slicePart } from '../../cli/passages/markdown.ts'
import type { TextRange } from '../../cli/passages/matches.ts'
import { plain } from '../../cli/terminal/terminal-text.ts'
import { type Highlight, renderText } from '../markdown/render.ts'
import { type Line, span, wrap } from '../parts/spans.ts'

/** Maximum width of text, because longer lines are hard to read. */
const TEXT_CELLS_MAX = 100
const TEXT_CELLS_MIN = 20

/** Prefixes: `margin` for normal lines, and `bar` for lines of the cited passage. */
const margin = span('    ')
const bar = [span('  '), span('▌', 'good'), span(' ')] as const

export interface DocumentLinesOptions {
  /** Columns of the terminal. */
  readonly columns: number
  readonly isMarkdown: boolean
  readonly highlight?: Highlight
  /** True to dim the text around the passage. */
  readonly dimsContext: boolean
}

/**
 * Renders a part of a document for a terminal, with a bar next to the cited passage.
 *
 * @param extent   the part to render
 * @param passage  the cited passage, inside the part; undefined if nothing is cited
 */
export function documentLines(
  text: string,
  extent: TextRange,
  passage: TextRange | undefined,
  options: DocumentLinesOptions,
): Line[] {
  const { start, end } = passage ?? { start: extent.end, end: extent.end }
  const before = partLines(text, { start: extent.start, end: start }, options)
  const cited = partLines(text, { start, end }, options)
  const after = partLines(text, { start: end, end: extent.end }, options)
  const renderContext = (lines: Line[]) =>
    lines.map(line => addMargin(options.dimsContext ? dimLine(line) : line))
  const parts = [renderContext(before), cited.map(line => [...bar, ...line]), renderContext(after)]
  const gaps = [false, isAtBreak(text, start), isAtBreak(text, end)]
  const lines: Line[] = []
  for (const [index, part] of parts.entries()) {
    if (gaps[index] && lines.length > 0 && part.length > 0) lines.push([])
    lines.push(...part)
  }
  return lines
}

/** Renders a part without empty lines at its start and end. */
function partLines(
  text: string,
  extent: TextRange,
  { columns, isMarkdown, highlight }: DocumentLinesOptions,
): Line[] {
  const width = Math.max(TEXT_CELLS_MIN, Math.min(TEXT_CELLS_MAX, columns - margin.text.length - 1))
  const isEmpty = (line: Line) => line.every(({ text }) => text.trim() === '')
  const lines = isMarkdown
    ? renderText(plain(slicePart(text, extent)), width, highlight)
    : plain(text.slice(extent.start, extent.end))
        .split('\n')
        .flatMap(line => textLine(line, width))
  const first = lines.findIndex(line => !isEmpty(line))
  return first < 0 ? [] : lines.slice(first, lines.findLastIndex(line => !isEmpty(line)) + 1)
}

/** Wraps a line of plain text, and keeps its indentation. */
function textLine(line: string, width: number): Line[] {
  const untabbed = line.replaceAll('\t', '    ').trimEnd()
  const indent = /^ */.exec(untabbed)![0].slice(0, width / 2)
  const indentSpans = indent === '' ? [] : [span(indent)]
  return wrap([span(untabbed.trimStart())], width, { first: indentSpans, rest: indentSpans })
}

function addMargin(line: Line): Line {
  return line.length === 0 ? [] : [margin, ...line]
}

/** Dims a line, except headings. */
function dimLine(line: Line): Line {
  const isHeading = line.some(({ tones }) => tones.includes('heading'))
  return isHeading || line.length === 0 ? line : [span(line.map(({ text }) => text).join(''), 'dim')]
}

/** Returns true if an offset is at a blank line or before a heading. */
function isAtBreak(text: string, offset: number): boolean {
  const [before, after] = [text.slice(0, offset).trimEnd(), text.slice(offset).trimStart()]
  const blank = text.slice(before.length, text.length - after.length)
  return /\n\s*\n/.test(blank) || /^#{1,6}\s/.test(after)
}
