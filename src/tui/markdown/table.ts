import { type Line, lineWidth, type StyledSpan, span, widestWord, wrap } from '../parts/spans.ts'

export interface Table {
  readonly head: readonly Line[]
  readonly body: readonly (readonly Line[])[]
  readonly align: readonly ('left' | 'right' | 'center' | null)[]
}

/** Number of blank cells between columns. */
const GAP = 2
const COLUMN_CELLS_MIN = 6
/** Maximum width of a word that is kept whole; wider words can be broken. */
const WORD_CELLS_MAX = 24

/** Lays out a table with wrapped cells. If it is still too wide, puts each cell on a separate line. */
export function tableLines(table: Table, width: number): Line[] {
  const widths = columnWidths(table, width)
  if (!widths) return stackedLines(table, width)
  const rule = span(widths.map(wide => '─'.repeat(wide)).join(' '.repeat(GAP)), 'dim')
  return [
    ...rowLines(table.head, widths, table.align),
    [rule],
    ...table.body.flatMap(row => rowLines(row, widths, table.align)),
  ]
}

function columnWidths({ head, body }: Table, width: number): number[] | undefined {
  const widths = head.map((cell, at) =>
    Math.max(1, lineWidth(cell), ...body.map(row => lineWidth(row[at] ?? []))),
  )
  const minimums = head.map((cell, at) => {
    const words = [cell, ...body.map(row => row[at] ?? [])].map(widestWord)
    return Math.max(COLUMN_CELLS_MIN, ...words.map(word => Math.min(word, WORD_CELLS_MAX)))
  })
  const room = width - GAP * (widths.length - 1)
  let sum = widths.reduce((total, wide) => total + wide, 0)
  while (sum > room) {
    const spare = widths.map((wide, at) => (wide > minimums[at]! ? wide : 0))
    const widest = spare.indexOf(Math.max(...spare))
    if (!spare[widest]) return undefined
    widths[widest]!--
    sum--
  }
  return widths
}

function rowLines(row: readonly Line[], widths: readonly number[], align: Table['align']): Line[] {
  const wrapped = widths.map((wide, at) => wrap(row[at] ?? [], wide))
  const height = Math.max(...wrapped.map(lines => lines.length))
  return Array.from({ length: height }, (_, down) =>
    trimLineEnd(
      widths.flatMap((wide, at): StyledSpan[] => [
        ...(at > 0 ? [span(' '.repeat(GAP))] : []),
        ...alignCell(wrapped[at]![down] ?? [], wide, align[at] ?? null),
      ]),
    ),
  )
}

function alignCell(line: Line, wide: number, side: Table['align'][number]): StyledSpan[] {
  const free = Math.max(0, wide - lineWidth(line))
  const left = side === 'right' ? free : side === 'center' ? Math.floor(free / 2) : 0
  return [span(' '.repeat(left)), ...line, span(' '.repeat(free - left))].filter(({ text }) => text !== '')
}

function trimLineEnd(line: StyledSpan[]): StyledSpan[] {
  const last = line.at(-1)
  return last && last.text.trim() === '' ? trimLineEnd(line.slice(0, -1)) : line
}

/** Puts each cell on a separate line, after the name of its column. */
function stackedLines({ head, body }: Table, width: number): Line[] {
  return body.flatMap((row, at) => [
    ...(at > 0 ? [[]] : []),
    ...head.flatMap((name, column) =>
      wrap([...name, span(': ', 'dim'), ...(row[column] ?? [])], width, { rest: [span('  ')] }),
    ),
  ])
}
