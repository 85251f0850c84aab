import type { TextRange } from './matches.ts'

/** Markdown text without its markup. */
export interface ReadableMarkdown {
  readonly text: string
  readonly headings: readonly Heading[]
  /** Offsets where a new line must start: at a table row, a list item, a line of code, or the text after one. */
  readonly lineStarts: readonly number[]
}

/** A heading and its offset in the readable text. */
export interface Heading {
  readonly title: string
  readonly offset: number
}

const headingLine = /^ {0,3}#{1,6}[ \t]+(.*?)[ \t]*#*[ \t]*$/
const fenceLine = /^ {0,3}(?:`{3,}|~{3,}).*$/
const tableLine = /^[ \t]*\|(.*)\|[ \t]*$/
const itemLine = /^[ \t]*(?:[-*+]|\d+[.)])[ \t]+\S/
const ruleLine = /^[ \t]*\|?(?:[ \t]*:?-{3,}:?[ \t]*\|?)+[ \t]*$/

/**
 * Removes the markup from Markdown. Adds a colon to headings, because the text after them continues on the same
 * line. Omits a heading that is equal to the document title.
 */
export function readMarkdown(text: string, title: string): ReadableMarkdown {
  const headings: Heading[] = []
  const lineStarts: number[] = []
  let readable = ''
  let isInCode = false
  /** True if the previous line was a table row, a list item or code, or continued one. */
  let wasSeparate = false
  const lines = text.split('\n')
  for (const [index, line] of lines.entries()) {
    const isFence = fenceLine.test(line)
    if (isFence) {
      isInCode = !isInCode
      lineStarts.push(readable.length)
    }
    if (isFence || (!isInCode && (ruleLine.test(line) || isTableHeader(line, lines[index + 1])))) continue
    const isSeparate = isInCode || tableLine.test(line) || itemLine.test(line)
    if (isSeparate || (wasSeparate && line.trim() === '')) lineStarts.push(readable.length)
    wasSeparate = isSeparate || (wasSeparate && line.trim() !== '')
    const heading = isInCode ? undefined : headingLine.exec(line)?.[1]
    if (heading) {
      const headingText = stripInlineMarkup(heading)
      headings.push({ title: headingText, offset: readable.length })
      if (headingText !== title) readable += `${headingText}${/\w$/.test(headingText) ? ':' : ''}\n`
    } else readable += `${isInCode ? line : stripInlineMarkup(line)}\n`
  }
  return { text: readable, headings, lineStarts }
}

/** Returns true for a table header. Headers are omitted, because the readable text has no aligned columns. */
function isTableHeader(line: string, next = ''): boolean {
  return tableLine.test(line) && tableLine.test(next) && ruleLine.test(next)
}

/** Returns a line without its markup, with dots between table cells. */
function stripInlineMarkup(line: string): string {
  const cells = tableLine.exec(line)?.[1]
  if (cells !== undefined)
    return cells
      .split(/(?<!\\)\|/)
      .map(stripInlineMarkup)
      .filter(cell => cell !== '')
      .join(' · ')
  return line
    .replace(/<!--.*?-->/g, '')
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/\*\*|__|`/g, '')
    .replace(/\*(\S[^*]*)\*/g, '$1')
    .replace(/^[ \t]*>/, '')
    .trim()
}

/** Returns the headings of a Markdown text, with the offsets of their lines. */
export function headingsIn(text: string): Heading[] {
  const headings: Heading[] = []
  for (const { line, start, openFence } of linesOf(text)) {
    const title = openFence ? undefined : headingLine.exec(line)?.[1]
    if (title) headings.push({ title: stripInlineMarkup(title), offset: start })
  }
  return headings
}

/** A line of a Markdown text, without its line break. */
interface SourceLine {
  readonly line: string
  readonly start: number
  /** Opening line of the code block that this line is in or closes; undefined outside code. */
  readonly openFence: string | undefined
}

function* linesOf(text: string): Generator<SourceLine> {
  let start = 0
  let openFence: string | undefined
  for (const line of text.split('\n')) {
    const isFence = fenceLine.test(line)
    yield { line, start, openFence }
    if (isFence) openFence = openFence === undefined ? line : undefined
    start += line.length + 1
  }
}

/**
 * Returns a part of a Markdown text. If the part starts inside a code block or a table, adds the opening line of the
 * code block or the header of the table.
 */
export function slicePart(text: string, { start, end }: TextRange): string {
  return openingLines(text, start) + text.slice(start, end)
}

function openingLines(text: string, offset: number): string {
  let table: string[] = []
  for (const { line, start, openFence } of linesOf(text)) {
    const isRow = openFence === undefined && tableLine.test(line)
    if (start + line.length >= offset) {
      if (openFence !== undefined) return `${openFence}\n`
      const hasHeader = isRow && table.length > 1 && ruleLine.test(table[1]!)
      return hasHeader ? `${table.slice(0, 2).join('\n')}\n` : ''
    }
    table = isRow ? [...table, line] : []
  }
  return ''
}

/** Extends a range to whole words or, in code, tables and headings, to whole lines. */
export function widenToWords(text: string, { start, end }: TextRange): TextRange {
  const blankRestOfLine = /^[ \t]*\n/
  let newStart = start
  let newEnd = end
  for (const { line, start: lineStart, openFence } of linesOf(text)) {
    const lineEnd = lineStart + line.length
    const isIndivisible = openFence !== undefined || tableLine.test(line) || headingLine.test(line)
    if (lineStart < start && start < lineEnd)
      newStart = isIndivisible ? lineStart : lineStart + line.slice(0, start - lineStart).search(/\S*$/)
    if (lineStart < end && end < lineEnd && !blankRestOfLine.test(text.slice(end)))
      newEnd = isIndivisible ? lineEnd : end + /^\S*/.exec(text.slice(end, lineEnd))![0].length
  }
  return { start: newStart, end: newEnd }
}

/** Returns the last heading at or before an offset. */
export function sectionAt(
  { headings }: Pick<ReadableMarkdown, 'headings'>,
  offset: number,
): Heading | undefined {
  return headings.findLast(heading => heading.offset <= offset)
}
