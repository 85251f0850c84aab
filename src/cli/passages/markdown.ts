/** Markdown text without its markup. */
export interface ReadableMarkdown {
  readonly text: string
  readonly headings: readonly Heading[]
  /** Offsets where a separate line begins: a table row, a list item, a line of code, or the text after one. */
  readonly lineStarts: readonly number[]
}

/** A heading and its offset in the readable text. */
export interface Heading {
  readonly title: string
  readonly at: number
}

const headingLine = /^ {0,3}#{1,6}[ \t]+(.*?)[ \t]*#*[ \t]*$/
const fenceLine = /^ {0,3}(?:`{3,}|~{3,}).*$/
const tableLine = /^[ \t]*\|(.*)\|[ \t]*$/
const itemLine = /^[ \t]*(?:[-*+]|\d+[.)])[ \t]+\S/
const ruleLine = /^[ \t]*\|?(?:[ \t]*:?-{3,}:?[ \t]*\|?)+[ \t]*$/

/**
 * Removes the markup of Markdown. Headings get a colon, because the following text continues on the same
 * line. A heading equal to the document title is left out.
 */
export function readMarkdown(text: string, title: string): ReadableMarkdown {
  const headings: Heading[] = []
  const lineStarts: number[] = []
  let readable = ''
  let fenced = false
  /** True if the last line was a separate line or its continuation. */
  let wasSeparate = false
  const all = text.split('\n')
  for (const [index, line] of all.entries()) {
    const isFence = fenceLine.test(line)
    if (isFence) {
      fenced = !fenced
      lineStarts.push(readable.length)
    }
    if (isFence || (!fenced && (ruleLine.test(line) || isTableHead(line, all[index + 1])))) continue
    const isSeparate = fenced || tableLine.test(line) || itemLine.test(line)
    if (isSeparate || (wasSeparate && line.trim() === '')) lineStarts.push(readable.length)
    wasSeparate = isSeparate || (wasSeparate && line.trim() !== '')
    const heading = fenced ? undefined : headingLine.exec(line)?.[1]
    if (heading) {
      const headingText = stripInlineMarkup(heading)
      headings.push({ title: headingText, at: readable.length })
      if (headingText !== title) readable += `${headingText}${/\w$/.test(headingText) ? ':' : ''}\n`
    } else readable += `${fenced ? line : stripInlineMarkup(line)}\n`
  }
  return { text: readable, headings, lineStarts }
}

/** Table headers are left out, because they mean little without columns. */
function isTableHead(line: string, next = ''): boolean {
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
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replace(/\*\*|__|`/g, '')
    .replace(/\*(\S[^*]*)\*/g, '$1')
    .replace(/^[ \t]*>/, '')
    .trim()
}

/** Returns the headings of a Markdown text, with the offsets of their lines. */
export function headingsIn(text: string): Heading[] {
  const headings: Heading[] = []
  for (const { line, start, isFenced } of linesOf(text)) {
    const title = isFenced ? undefined : headingLine.exec(line)?.[1]
    if (title) headings.push({ title: stripInlineMarkup(title), at: start })
  }
  return headings
}

/** A line of a Markdown text, without its line break. */
interface SourceLine {
  readonly line: string
  readonly start: number
  /** Opening line of the code fence that it is in or closes. */
  readonly isFenced: string | undefined
}

function* linesOf(text: string): Generator<SourceLine> {
  let start = 0
  let isFenced: string | undefined
  for (const line of text.split('\n')) {
    const isFence = fenceLine.test(line)
    yield { line, start, isFenced }
    if (isFence) isFenced = isFenced === undefined ? line : undefined
    start += line.length + 1
  }
}

/** A part of a Markdown text: `text.slice(start, end)`. */
interface Extent {
  readonly start: number
  readonly end: number
}

/**
 * Returns a part of a Markdown text. A part that starts inside code or a table is prefixed with the opening
 * line of the code, or the table header.
 */
export function slicePart(text: string, { start, end }: Extent): string {
  return openingLines(text, start) + text.slice(start, end)
}

function openingLines(text: string, offset: number): string {
  let table: string[] = []
  for (const { line, start, isFenced } of linesOf(text)) {
    const isRow = isFenced === undefined && tableLine.test(line)
    if (start + line.length >= offset) {
      if (isFenced !== undefined) return `${isFenced}\n`
      const isHeaded = isRow && table.length > 1 && ruleLine.test(table[1]!)
      return isHeaded ? `${table.slice(0, 2).join('\n')}\n` : ''
    }
    table = isRow ? [...table, line] : []
  }
  return ''
}

/** Widens a part to whole words; in code, tables and headings, to whole lines. */
export function widenToWords(text: string, { start, end }: Extent): Extent {
  const isWhole = /^[ \t]*\n/
  let from = start
  let until = end
  for (const { line, start: at, isFenced } of linesOf(text)) {
    const lineEnd = at + line.length
    const isOne = isFenced !== undefined || tableLine.test(line) || headingLine.test(line)
    if (at < start && start < lineEnd) from = isOne ? at : at + line.slice(0, start - at).search(/\S*$/)
    if (at < end && end < lineEnd && !isWhole.test(text.slice(end)))
      until = isOne ? lineEnd : end + /^\S*/.exec(text.slice(end, lineEnd))![0].length
  }
  return { start: from, end: until }
}

/** Returns the heading above an offset. */
export function sectionAt(
  { headings }: Pick<ReadableMarkdown, 'headings'>,
  offset: number,
): Heading | undefined {
  return headings.findLast(({ at }) => at <= offset)
}
