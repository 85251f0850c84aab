import type { ChunkSpan } from './chunker.ts'
import { firstLineStart, nextLine } from './space.ts'

/** Maximum length of the column headers of a table, in UTF-16 units. The rest is cut. */
const headsCharsMax = 300
const fencePattern = /^ {0,3}(`{3,}|~{3,})/
/** Maximum length of the part of a line in which a fence is searched. */
const fenceLineChars = 200

/** A Markdown table. Its first line is the header row, and its second line is the delimiter row. */
export interface MarkdownTable {
  readonly start: number
  /** Offset after the delimiter row. */
  readonly bodyStart: number
  /** Offset after the last row. */
  readonly end: number
}

/**
 * Yields the tables of a Markdown text in order. Takes linear time.
 *
 * @see https://github.github.com/gfm/#tables-extension-
 */
export function* findTables(text: string): Generator<MarkdownTable> {
  let openFence: string | undefined
  let start = 0
  while (start < text.length) {
    const next = nextLine(text, start + 1)
    const fence = fencePattern.exec(text.slice(start, Math.min(next, start + fenceLineChars)))?.[1]
    if (fence && (openFence === undefined || fence.startsWith(openFence)))
      openFence = openFence === undefined ? fence : undefined
    const bodyStart = next < text.length ? nextLine(text, next + 1) : next
    const isTable =
      openFence === undefined && hasPipe(text, start, next) && isDelimiterRow(text, next, bodyStart)
    if (!isTable) {
      start = next
      continue
    }
    let end = bodyStart
    while (end < text.length) {
      const rowEnd = nextLine(text, end + 1)
      if (!hasPipe(text, end, rowEnd)) break
      end = rowEnd
    }
    yield { start, bodyStart, end }
    start = end
  }
}

/**
 * Returns the column headers of the table in which each span starts, such as `Name | Role`; undefined if a span starts outside of the body
 * of a table.
 *
 * @param spans  with ascending starts
 */
export function tableHeadsAt(text: string, spans: readonly ChunkSpan[]): (string | undefined)[] {
  const tables = findTables(text)
  let table = tables.next()
  let heads: string | undefined
  return spans.map(({ start }) => {
    while (!table.done && table.value.end <= start) {
      table = tables.next()
      heads = undefined
    }
    if (table.done || start < table.value.bodyStart) return undefined
    heads ??= headsOf(text, table.value)
    return heads || undefined
  })
}

/**
 * Returns the column headers of a CSV or TSV text, such as `Name | Role`, for each span that starts after the first row; undefined
 * for other spans.
 *
 * @see RFC 4180
 */
export function columnHeadsAt(text: string, spans: readonly ChunkSpan[]): (string | undefined)[] {
  const start = firstLineStart(text)
  const rowEnd = nextLine(text, start + 1)
  const row = text.slice(start, Math.min(rowEnd, start + 2 * headsCharsMax)).trim()
  const delimiter = ['\t', ';', ','].find(character => row.includes(character)) ?? ','
  const cells = row.split(delimiter).map(cell => cell.replace(/^\s*"|"\s*$/g, ''))
  const heads = joinHeads(cells)
  return spans.map(span => (span.start < rowEnd || heads === '' ? undefined : heads))
}

/** Returns the column headers of a table, which are empty if its header row has no text. */
function headsOf(text: string, { start, bodyStart }: MarkdownTable): string {
  const [line] = text.slice(start, Math.min(bodyStart, start + 2 * headsCharsMax)).split(/\r\n|[\n\r]/, 1)
  return joinHeads(
    line!
      .trim()
      .replace(/^\||\|$/g, '')
      .split('|'),
  )
}

function joinHeads(cells: readonly string[]): string {
  return cells
    .map(head => head.trim())
    .filter(head => head !== '')
    .join(' | ')
    .slice(0, headsCharsMax)
}

function hasPipe(text: string, start: number, end: number): boolean {
  for (let offset = start; offset < end; offset++) if (text.charCodeAt(offset) === 0x7c) return true
  return false
}

/** Returns true if a line has only the characters of a delimiter row, with at least one hyphen and one pipe. */
function isDelimiterRow(text: string, start: number, end: number): boolean {
  let hasHyphen = false
  let isPiped = false
  for (let offset = start; offset < end; offset++) {
    const character = text[offset]!
    if (!'|-: \t\r\n'.includes(character)) return false
    hasHyphen ||= character === '-'
    isPiped ||= character === '|'
  }
  return hasHyphen && isPiped
}
