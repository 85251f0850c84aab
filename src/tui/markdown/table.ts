import { type Line, lineWidth, type StyledSpan, span, widestWord, wrap } from '../parts/spans.ts'

export interface Table {
  readonly head: readonly Line[]
  readonly body: readonly (readonly Line[])[]
  readonly alignments: readonly ('left' | 'right' | 'center' | null)[]
}

/** Number of blank cells between columns. */
const GAP = 2
const COLUMN_CELLS_MIN = 6
/** Maximum width of words that are not broken. */
const WORD_CELLS_MAX = 24

/** Lays out a table with wrapped cells. If the table is still too wide, puts each cell on a separate line. */
export function tableLines(table: Table, width: number): Line[] {
  const widths = columnWidths(table, width)
  if (!widths) return stackedLines(table, width)
  const rule = span(widths.map(columnWidth => '─'.repeat(columnWidth)).join(' '.repeat(GAP)), 'dim')
  return [
    ...rowLines(table.head, widths, table.alignments),
    [rule],
    ...table.body.flatMap(row => rowLines(row, widths, table.alignments)),
  ]
}

function columnWidths({ head, body }: Table, width: number): number[] | undefined {
  const widths = head.map((cell, index) =>
    Math.max(1, lineWidth(cell), ...body.map(row => lineWidth(row[index] ?? []))),
  )
  const minimums = head.map((cell, index) => {
    const words = [cell, ...body.map(row => row[index] ?? [])].map(widestWord)
    return Math.max(COLUMN_CELLS_MIN, ...words.map(word => Math.min(word, WORD_CELLS_MAX)))
  })
  const availableWidth = width - GAP * (widths.length - 1)
  let sum = widths.reduce((total, columnWidth) => total + columnWidth, 0)
  while (sum > availableWidth) {
    const spare = widths.map((columnWidth, index) => (columnWidth > minimums[index]! ? columnWidth : 0))
    const widest = spare.indexOf(Math.max(...spare))
    if (!spare[widest]) return undefined
    widths[widest]!--
    sum--
  }
  return widths
}

function rowLines(row: readonly Line[], widths: readonly number[], alignments: Table['alignments']): Line[] {
  const wrapped = widths.map((columnWidth, index) => wrap(row[index] ?? [], columnWidth))
  const height = Math.max(...wrapped.map(lines => lines.length))
  return Array.from({ length: height }, (_, line) =>
    trimLineEnd(
      widths.flatMap((columnWidth, index): StyledSpan[] => [
        ...(index > 0 ? [span(' '.repeat(GAP))] : []),
        ...alignCell(wrapped[index]![line] ?? [], columnWidth, alignments[index] ?? null),
      ]),
    ),
  )
}

function alignCell(line: Line, columnWidth: number, side: Table['alignments'][number]): StyledSpan[] {
  const free = Math.max(0, columnWidth - lineWidth(line))
  const left = side === 'right' ? free : side === 'center' ? Math.floor(free / 2) : 0
  return [span(' '.repeat(left)), ...line, span(' '.repeat(free - left))].filter(({ text }) => text !== '')
}

function trimLineEnd(line: StyledSpan[]): StyledSpan[] {
  const last = line.at(-1)
  return last && last.text.trim() === '' ? trimLineEnd(line.slice(0, -1)) : line
}

/** Puts each cell on a separate line, after the name of its column. */
function stackedLines({ head, body }: Table, width: number): Line[] {
  return body.flatMap((row, index) => [
    ...(index > 0 ? [[]] : []),
    ...head.flatMap((name, column) =>
      wrap([...name, span(': ', 'dim'), ...(row[column] ?? [])], width, { rest: [span('  ')] }),
    ),
  ])
}
