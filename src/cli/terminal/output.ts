import { formatAgo, formatDue, formatTimeOfDay } from './duration.ts'
import type { JqFilter } from './jq.ts'
import type { Style } from './style.ts'
import { linkText, type StatusTone, styleFor } from './style.ts'
import {
  displayWidth,
  keepStylesOnly,
  pad,
  plain,
  plainJson,
  plainLine,
  truncate,
  withoutTokens,
} from './terminal-text.ts'
import { wrapLine, wrapWords } from './wrap.ts'

/** A stream to a terminal or a pipe. */
export interface Sink {
  write(text: string): unknown
  readonly isTTY?: boolean
  readonly columns?: number
}

export interface OutputOptions {
  stdout: Sink
  stderr: Sink
  json: boolean
  /** Filter of `--jq`. It implies `json`. */
  filter?: JqFilter
  quiet: boolean
  useColor: boolean
  /** Flags to add to suggested commands, with a leading space. */
  contextFlags?: string
  /** Replaces `wb` in the commands of a message with the words that start this program, such as `npx workbase`. */
  adaptCommands?(text: string): string
  /** Returns the current time in milliseconds since 1970. */
  now: () => number
}

/** A value in a table or list of fields. Times are in ISO 8601. */
export type Cell = string | number | boolean | null | undefined

/** A field to show: a value, a past time, or a future time. */
export type Field = Cell | { time: string | null } | { due: string | null }

/** A column of a table. */
export interface Column<T> {
  value(row: T): Cell
  /**
   * `text` is the default. `flexible` text is truncated if a line is too long. `time` (past) and `due` (future) are
   * shown relative to now. `count` is aligned on the right.
   */
  format?: 'text' | 'flexible' | 'time' | 'due' | 'count'
  /** Minimum width in cells, for rows that are printed one at a time. */
  widthMin?: number
  /** Returns the color of a cell by its meaning, if any. */
  tone?(row: T): StatusTone | undefined
  /** True for a column that is shown only in a pipe. */
  pipeOnly?: boolean
}

export interface ListOptions<T> {
  /** Columns by heading. In a pipe, columns are separated by tabs and have no headings. */
  columns: Record<string, Column<T>>
  /** True to print the table of a terminal also in a pipe, because the list is part of a report for people. */
  isReport?: boolean
  /** Lines for stderr if there are no rows: a statement, then a command to run. */
  empty: readonly string[]
  /** Total number of items, if it is larger than the number of rows. */
  total?: string
}

const gap = '  '
const flexibleWidthMin = 12
/** Indentation of continuation lines of a row. */
const continuationIndent = 4
const widthDefault = 80

/** Returns the width of a terminal. Terminals without a size, such as those of some containers, report 0. */
function columnsOf({ columns }: Sink): number {
  return columns || widthDefault
}

/** Writes the result of a command to stdout, and all other messages to stderr. */
export class Output {
  readonly style: Style
  readonly errorStyle: Style
  /** True if the result is shown in a terminal. */
  readonly interactive: boolean
  readonly json: boolean
  readonly #hasLinks: boolean

  constructor(private readonly options: OutputOptions) {
    this.json = options.json || options.filter !== undefined
    this.interactive = options.stdout.isTTY === true && !this.json
    this.#hasLinks = options.useColor && options.stdout.isTTY === true
    this.style = styleFor(this.#hasLinks)
    this.errorStyle = styleFor(options.useColor && options.stderr.isTTY === true)
  }

  /** True with `--jq`. */
  get hasFilter(): boolean {
    return this.options.filter !== undefined
  }

  /** Width of the terminal; infinite for a pipe. */
  get width(): number {
    return this.options.stdout.isTTY ? columnsOf(this.options.stdout) : Number.POSITIVE_INFINITY
  }

  /**
   * Writes a line or several lines to stdout: to a pipe unchanged, to a terminal without control characters.
   *
   * @param address  URL to which the line links, in a terminal with colors
   */
  result(text: string, address?: string): void {
    const styledText = this.options.stdout.isTTY ? keepStylesOnly(text) : text
    const isLink = address !== undefined && this.#hasLinks
    const printedText = isLink ? linkText(styledText, address) : styledText
    this.options.stdout.write(printedText.endsWith('\n') ? printedText : `${printedText}\n`)
  }

  /** Writes a value as JSON. In a terminal, it is indented. */
  value(value: unknown): void {
    for (const text of this.jsonTexts(value, this.options.stdout.isTTY ? 2 : undefined)) this.result(text)
  }

  /** Writes a value as one line of JSON, for output that consists of several values. */
  line(value: unknown): void {
    for (const text of this.jsonTexts(value)) this.result(text)
  }

  /**
   * Returns the strings to print for a value: its JSON, or each result of `--jq` as JSON. Results that are strings have
   * no quotes.
   *
   * @throws UsageError  the expression cannot be applied to the value
   */
  jsonTexts(value: unknown, indent?: number): string[] {
    const { filter, stdout } = this.options
    if (!filter) return [plainJson(value, indent)]
    const rawString = (text: string) => (stdout.isTTY ? plain(text) : text)
    return filter(value).map(result =>
      typeof result === 'string' ? rawString(result) : plainJson(result, indent),
    )
  }

  /**
   * Reports a created or changed resource: a sentence in a terminal, the ID in a pipe, the object with
   * `--json`.
   */
  reportSaved(value: unknown, id: string, line: string): void {
    if (this.json) this.value(value)
    else if (this.interactive)
      this.result(wrapWords(`  ${this.style.good('✓')} ${plainLine(line)}`, this.width))
    else this.result(plainLine(id))
  }

  /** Reports a deleted resource: a message on stderr, the ID with `--json`. */
  reportDeleted(id: string, line: string): void {
    if (this.json) this.value({ deleted: id })
    else this.note(`  ✓ ${line}`)
  }

  /** Writes a message to stderr. With `--quiet`, writes nothing. */
  note(text: string): void {
    if (!this.options.quiet) this.warn(text)
  }

  /** Suggests a command to run next, with the {@link contextFlags} of this command. */
  suggest(command: string): void {
    this.note(`  ${command}${this.contextFlags}`)
  }

  /** Flags of this command that suggested commands also need, with a leading space; empty if there are none. */
  get contextFlags(): string {
    return this.options.contextFlags ?? ''
  }

  /** Writes a message to stderr, even with `--quiet`. In a terminal, it is wrapped. */
  warn(text: string): void {
    const { stderr, adaptCommands } = this.options
    const adaptedText = adaptCommands ? adaptCommands(text) : text
    this.trace(stderr.isTTY ? wrapWords(adaptedText, columnsOf(stderr)) : adaptedText)
  }

  /** Writes to stderr without wrapping. Removes API keys, because stderr is often stored in logs. */
  trace(text: string): void {
    this.options.stderr.write(`${withoutTokens(keepStylesOnly(text))}\n`)
  }

  /**
   * Prints a list: a table without empty columns in a terminal, tab-separated lines with all columns in a
   * pipe, an array with `--json`.
   */
  list<T>(rows: readonly T[], list: ListOptions<T>): void {
    if (this.json) this.value(rows)
    else if (rows.length === 0) this.note(list.empty.map(line => `  ${line}`).join('\n'))
    else this.#printRows(rows, list)
  }

  /**
   * Prints one row of a list that is not complete yet: aligned in a terminal, tab-separated in a pipe, a line of JSON
   * with `--json`.
   */
  row<T>(row: T, columns: Record<string, Column<T>>): void {
    const allColumns = Object.values(columns)
    if (this.json) this.line(row)
    else if (!this.interactive) this.result(allColumns.map(column => pipeCell(column.value(row))).join('\t'))
    else {
      for (const line of this.#rowLines(row, allColumns)) this.result(line)
    }
  }

  /**
   * Returns the lines of a row: one line if its flexible columns can be truncated enough, otherwise wrapped
   * lines.
   */
  #rowLines<T>(row: T, allColumns: readonly Column<T>[]): string[] {
    const columns = allColumns.filter(({ pipeOnly }) => !pipeOnly)
    const texts = columns.map(column => this.#rowCell(column, row))
    const widths = texts.map((text, index) => Math.max(columns[index]!.widthMin ?? 0, displayWidth(text)))
    if (this.#shrinkToFit(columns, widths)) return [`${gap}${this.#line(columns, row, texts, widths)}`]
    const styledTexts = texts.map((text, index) => this.#withTone(columns[index]!, row, text))
    return wrapLine(`${gap}${styledTexts.join(gap)}`, this.width, continuationIndent)
  }

  #line<T>(
    columns: readonly Column<T>[],
    row: T,
    texts: readonly string[],
    widths: readonly number[],
  ): string {
    return texts
      .map((text, index) => {
        const column = columns[index]!
        const truncatedText = truncate(text, widths[index]!)
        const side = column.format === 'count' ? 'left' : 'right'
        return pad(truncatedText, widths[index]!, side).replace(truncatedText, () =>
          this.#withTone(column, row, truncatedText),
        )
      })
      .join(gap)
      .trimEnd()
  }

  /** Returns the text of a cell of {@link row}. Times are absolute, because the row stays on the screen. */
  #rowCell<T>(column: Column<T>, row: T): string {
    const cell = column.value(row)
    return column.format === 'time' && !isEmpty(cell)
      ? formatTimeOfDay(String(cell))
      : this.#cell(column, row)
  }

  #printRows<T>(rows: readonly T[], list: ListOptions<T>): void {
    const columns = Object.entries(list.columns)
    if (this.interactive || list.isReport) for (const line of this.#table(rows, columns)) this.result(line)
    else
      for (const row of rows) this.result(columns.map(([, column]) => pipeCell(column.value(row))).join('\t'))
    if (list.total !== undefined)
      this.note(this.errorStyle.dim(`  ${formatCount(rows.length)} of ${list.total}`))
  }

  /** Prints the fields of an object, one per line; the object with `--json`. */
  fields(value: unknown, fields: Record<string, Field>): void {
    if (this.json) this.value(value)
    else for (const line of this.fieldLines(fields)) this.result(line)
  }

  /** Returns the lines of {@link fields}, for a screen that is redrawn. */
  fieldLines(fields: Record<string, Field>): string[] {
    const visibleFields = Object.entries(fields).filter(
      ([, cell]) => cell !== undefined && cell !== null && cell !== '',
    )
    const width = Math.max(...visibleFields.map(([name]) => displayWidth(name)))
    return visibleFields.flatMap(([name, cell]) => {
      const time = timeOfField(cell)
      if (!this.interactive) return [`${name}\t${plainLine(String(time ? (time.iso ?? '') : cell))}`]
      return this.#fieldLines(
        pad(name, width),
        time ? this.#formatTime(time.format, time.iso) : plain(String(cell)),
      )
    })
  }

  #fieldLines(name: string, text: string): string[] {
    const indent = gap.length + displayWidth(name) + gap.length
    return wrapLine(`${gap}${this.style.dim(name)}${gap}${text}`, this.width, indent)
  }

  /** Yields a table with headings, or one field per line if the terminal is too narrow. */
  *#table<T>(rows: readonly T[], allColumns: [string, Column<T>][]): Generator<string> {
    const visibleColumns = allColumns.filter(
      ([, column]) => !column.pipeOnly && rows.some(row => !isEmpty(column.value(row))),
    )
    const [headings, columns] = [
      visibleColumns.map(([heading]) => heading),
      visibleColumns.map(([, column]) => column),
    ]
    const cells = rows.map(row => columns.map(column => this.#cell(column, row)))
    const widths = headings.map((heading, index) =>
      Math.max(displayWidth(heading), ...cells.map(line => displayWidth(line[index]!))),
    )
    if (!this.#shrinkToFit(columns, widths)) {
      for (const [at, texts] of cells.entries())
        yield* this.#stackedRow(rows[at]!, { headings, columns, texts })
      return
    }
    const headingColumns = columns.map(({ format }) => ({ value: () => '', format }))
    yield this.style.dim(`${gap}${this.#line(headingColumns, undefined, headings, widths)}`)
    for (const [at, texts] of cells.entries()) yield `${gap}${this.#line(columns, rows[at]!, texts, widths)}`
  }

  *#stackedRow<T>(
    row: T,
    { headings, columns, texts }: { headings: string[]; columns: Column<T>[]; texts: string[] },
  ): Generator<string> {
    const width = Math.max(...headings.map(displayWidth))
    for (const [index, column] of columns.entries())
      if (!isEmpty(column.value(row)))
        yield* this.#fieldLines(pad(headings[index]!, width), this.#withTone(column, row, texts[index]!))
    yield ''
  }

  #withTone<T>({ tone }: Column<T>, row: T, text: string): string {
    const style = tone?.(row)
    return style ? this.style[style](text) : text
  }

  /** Reduces the widths of the widest flexible columns until a row fits. Returns false if it cannot fit. */
  #shrinkToFit<T>(columns: readonly Column<T>[], widths: number[]): boolean {
    const excessWidth = () =>
      gap.length + widths.reduce((sum, width) => sum + width + gap.length, -gap.length) - this.width
    const flexibleIndexes = columns.flatMap(({ format }, index) => (format === 'flexible' ? [index] : []))
    for (let excess = excessWidth(); excess > 0; excess--) {
      const widest = flexibleIndexes.reduce(
        (best, index) => (widths[index]! > (widths[best] ?? 0) ? index : best),
        -1,
      )
      if (widest < 0 || widths[widest]! <= flexibleWidthMin) return false
      widths[widest]!--
    }
    return true
  }

  #cell<T>(column: Column<T>, row: T): string {
    const cell = column.value(row)
    if (isEmpty(cell)) return '–'
    if (column.format === 'time' || column.format === 'due')
      return this.#formatTime(column.format, String(cell))
    return typeof cell === 'number' ? formatCount(cell) : plainLine(String(cell))
  }

  #formatTime(format: 'time' | 'due', iso: string | null): string {
    if (iso === null) return '–'
    return (format === 'time' ? formatAgo : formatDue)(Date.parse(iso), this.options.now())
  }
}

function timeOfField(field: Field): { format: 'time' | 'due'; iso: string | null } | undefined {
  if (typeof field !== 'object' || field === null) return undefined
  return 'time' in field ? { format: 'time', iso: field.time } : { format: 'due', iso: field.due }
}

function pipeCell(cell: Cell): string {
  return cell === null || cell === undefined ? '' : plainLine(String(cell))
}

function isEmpty(cell: Cell): cell is null | undefined | '' {
  return cell === null || cell === undefined || cell === ''
}

/** Formats an integer with thousands separators: 1,204. */
export function formatCount(value: number): string {
  return value.toLocaleString('en-US')
}

/** Formats a number with a noun: 1 chunk, 1,204 chunks. */
export function formatCounted(value: number, singular: string, plural = `${singular}s`): string {
  return `${formatCount(value)} ${value === 1 ? singular : plural}`
}
