import { formatAgo, formatDue, formatTimeOfDay } from './duration.ts'
import type { JqFilter } from './jq.ts'
import type { Style } from './style.ts'
import { type StatusTone, styleFor } from './style.ts'
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
  /** Filter of `--jq`. With a filter, `json` counts as true. */
  filter?: JqFilter
  quiet: boolean
  colour: boolean
  /** Flags to add to suggested commands, with a leading space. */
  contextFlags?: string
  /** Adapts commands in messages to how this program was started. */
  adaptCommands?(text: string): string
  now: () => number
}

/** A value of a table. Times are in ISO 8601. */
export type Cell = string | number | boolean | null | undefined

/** A field to show: a value, a past time, or a future time. */
export type Field = Cell | { time: string | null } | { due: string | null }

/** A column of a table. */
export interface Column<T> {
  value(row: T): Cell
  /**
   * `flexible` text is truncated if a line is too long; a `time` (past) or `due` (future) is shown relative to
   * now. Default: `text`.
   */
  format?: 'text' | 'flexible' | 'time' | 'due' | 'count'
  /** Minimum width in a row that is shown alone, in cells. */
  widthMin?: number
  /** Color of the cell, if it has a meaning. */
  tone?(row: T): StatusTone | undefined
  /** True for a column that is shown only in a pipe. */
  pipeOnly?: boolean
}

export interface ListOptions<T> {
  /** Columns by heading. In a pipe, columns are separated by tabs and have no headings. */
  columns: Record<string, Column<T>>
  /** Lines for stderr if there are no rows: the fact, then a command to type. */
  empty: readonly string[]
  /** Total number of items, if the rows are not all of them. */
  total?: string
}

const gap = '  '
const flexibleWidthMin = 12
/** Indentation of continuation lines of a row. */
const continuationIndent = 4
const widthDefault = 80

/** Writes the result of a command to stdout, and all other messages to stderr. */
export class Output {
  readonly style: Style
  readonly errorStyle: Style
  /** True if the result is shown in a terminal. */
  readonly interactive: boolean
  readonly json: boolean

  constructor(private readonly options: OutputOptions) {
    this.json = options.json || options.filter !== undefined
    this.interactive = options.stdout.isTTY === true && !this.json
    this.style = styleFor(options.colour && options.stdout.isTTY === true)
    this.errorStyle = styleFor(options.colour && options.stderr.isTTY === true)
  }

  /** True with `--jq`. */
  get hasFilter(): boolean {
    return this.options.filter !== undefined
  }

  /** Width of the terminal; infinite for a pipe. */
  get width(): number {
    return this.options.stdout.isTTY
      ? (this.options.stdout.columns ?? widthDefault)
      : Number.POSITIVE_INFINITY
  }

  /** Writes to stdout. A pipe gets the text unchanged. */
  result(text: string): void {
    const shown = this.options.stdout.isTTY ? keepStylesOnly(text) : text
    this.options.stdout.write(shown.endsWith('\n') ? shown : `${shown}\n`)
  }

  /** Writes an object as JSON, as returned by the API. */
  value(value: unknown): void {
    for (const text of this.jsonTexts(value, this.options.stdout.isTTY ? 2 : undefined)) this.result(text)
  }

  /** Writes one of several objects as a line of JSON. */
  line(value: unknown): void {
    for (const text of this.jsonTexts(value)) this.result(text)
  }

  /**
   * Returns the texts to print for an object: its JSON, or the results of `--jq`, whose strings are printed
   * without quotes.
   *
   * @throws UsageError  the expression cannot be applied to the object
   */
  jsonTexts(value: unknown, indent?: number): string[] {
    const { filter, stdout } = this.options
    if (!filter) return [plainJson(value, indent)]
    const own = (text: string) => (stdout.isTTY ? plain(text) : text)
    return filter(value).map(reportSaved =>
      typeof reportSaved === 'string' ? own(reportSaved) : plainJson(reportSaved, indent),
    )
  }

  /**
   * Reports a created or changed resource: a sentence in a terminal, the ID in a pipe, the object with
   * `--json`.
   */
  made(value: unknown, id: string, line: string): void {
    if (this.json) this.value(value)
    else this.result(this.interactive ? `  ${this.style.good('✓')} ${plainLine(line)}` : plainLine(id))
  }

  /** Reports a deleted resource: a message on stderr, the ID with `--json`. */
  reportDeleted(id: string, line: string): void {
    if (this.json) this.value({ deleted: id })
    else this.note(`  ✓ ${line}`)
  }

  /** Writes a message to stderr. Omitted with `--quiet`. */
  note(text: string): void {
    if (!this.options.quiet) this.warn(text)
  }

  /** Suggests a command to run next, with the flags of this command that it needs. */
  suggest(line: string): void {
    this.note(`  ${line}${this.contextFlags}`)
  }

  /** Flags that a line to type next repeats, after a blank; empty where there are none. */
  get contextFlags(): string {
    return this.options.contextFlags ?? ''
  }

  /** Writes a warning to stderr, also with `--quiet`. */
  warn(text: string): void {
    const { stderr, adaptCommands } = this.options
    const { isTTY, columns = widthDefault } = stderr
    const adapted = adaptCommands ? adaptCommands(text) : text
    this.trace(isTTY ? wrapWords(adapted, columns) : adapted)
  }

  /** Writes to stderr without wrapping. Removes tokens, because stderr often ends up in logs. */
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
   * Prints one row of a growing list: aligned in a terminal, tab-separated in a pipe, a line of JSON with
   * `--json`.
   */
  row<T>(row: T, columns: Record<string, Column<T>>): void {
    const all = Object.values(columns)
    if (this.json) this.line(row)
    else if (!this.interactive) this.result(all.map(column => pipeCell(column.value(row))).join('\t'))
    else {
      for (const line of this.#rowLines(row, all)) this.result(line)
    }
  }

  /** Returns the lines of a single row: truncated to one line if enough of it remains, else wrapped. */
  #rowLines<T>(row: T, all: readonly Column<T>[]): string[] {
    const columns = all.filter(({ pipeOnly }) => !pipeOnly)
    const texts = columns.map(column => this.#rowCell(column, row))
    const widths = texts.map((text, index) => Math.max(columns[index]!.widthMin ?? 0, displayWidth(text)))
    if (this.#shrinkToFit(columns, widths)) return [`${gap}${this.#line(columns, row, texts, widths)}`]
    const whole = texts.map((text, index) => this.#withTone(columns[index]!, row, text))
    return wrapLine(`${gap}${whole.join(gap)}`, this.width, continuationIndent)
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
        const cut = truncate(text, widths[index]!)
        const side = column.format === 'count' ? 'left' : 'right'
        return pad(cut, widths[index]!, side).replace(cut, () => this.#withTone(column, row, cut))
      })
      .join(gap)
      .trimEnd()
  }

  /** Returns the cell of a single row. Times are absolute, because the row stays on the screen. */
  #rowCell<T>(column: Column<T>, row: T): string {
    const cell = column.value(row)
    return column.format === 'time' && !isEmpty(cell)
      ? formatTimeOfDay(String(cell))
      : this.#cell(column, row)
  }

  #printRows<T>(rows: readonly T[], list: ListOptions<T>): void {
    const columns = Object.entries(list.columns)
    if (this.interactive) for (const line of this.#table(rows, columns)) this.result(line)
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
    const shown = Object.entries(fields).filter(
      ([, cell]) => cell !== undefined && cell !== null && cell !== '',
    )
    const width = Math.max(...shown.map(([name]) => displayWidth(name)))
    return shown.flatMap(([name, cell]) => {
      const moment = momentOf(cell)
      if (!this.interactive) return [`${name}\t${plainLine(String(moment ? (moment.iso ?? '') : cell))}`]
      return this.#fieldLines(
        pad(name, width),
        moment ? this.#formatMoment(moment.as, moment.iso) : plain(String(cell)),
      )
    })
  }

  #fieldLines(name: string, text: string): string[] {
    const hang = gap.length + displayWidth(name) + gap.length
    return wrapLine(`${gap}${this.style.dim(name)}${gap}${text}`, this.width, hang)
  }

  /** Returns a table with headings, or one field per line if the terminal is too narrow. */
  *#table<T>(rows: readonly T[], all: [string, Column<T>][]): Generator<string> {
    const shown = all.filter(
      ([, column]) => !column.pipeOnly && rows.some(row => !isEmpty(column.value(row))),
    )
    const [headings, columns] = [shown.map(([heading]) => heading), shown.map(([, column]) => column)]
    const cells = rows.map(row => columns.map(column => this.#cell(column, row)))
    const widths = headings.map((heading, index) =>
      Math.max(displayWidth(heading), ...cells.map(line => displayWidth(line[index]!))),
    )
    if (!this.#shrinkToFit(columns, widths)) {
      for (const [at, texts] of cells.entries())
        yield* this.#stackedRow(rows[at]!, { headings, columns, texts })
      return
    }
    const heads = columns.map(({ format }) => ({ value: () => '', format }))
    yield this.style.dim(`${gap}${this.#line(heads, undefined, headings, widths)}`)
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
    const named = tone?.(row)
    return named ? this.style[named](text) : text
  }

  /** Shrinks the widest flexible columns until the row fits. Returns false if it cannot fit. */
  #shrinkToFit<T>(columns: readonly Column<T>[], widths: number[]): boolean {
    const over = () =>
      gap.length + widths.reduce((sum, width) => sum + width + gap.length, -gap.length) - this.width
    const flexible = columns.flatMap(({ format }, index) => (format === 'flexible' ? [index] : []))
    for (let excess = over(); excess > 0; excess--) {
      const widest = flexible.reduce(
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
      return this.#formatMoment(column.format, String(cell))
    return typeof cell === 'number' ? formatCount(cell) : plainLine(String(cell))
  }

  #formatMoment(as: 'time' | 'due', iso: string | null): string {
    if (iso === null) return '–'
    return (as === 'time' ? formatAgo : formatDue)(Date.parse(iso), this.options.now())
  }
}

function momentOf(field: Field): { as: 'time' | 'due'; iso: string | null } | undefined {
  if (typeof field !== 'object' || field === null) return undefined
  return 'time' in field ? { as: 'time', iso: field.time } : { as: 'due', iso: field.due }
}

function pipeCell(cell: Cell): string {
  return cell === null || cell === undefined ? '' : plainLine(String(cell))
}

function isEmpty(cell: Cell): cell is null | undefined | '' {
  return cell === null || cell === undefined || cell === ''
}

/** Formats an integer with separators: 1,204. */
export function formatCount(value: number): string {
  return value.toLocaleString('en-US')
}

/** Formats a number with a noun: 1 chunk, 1,204 chunks. */
export function formatCounted(value: number, one: string, many = `${one}s`): string {
  return `${formatCount(value)} ${value === 1 ? one : many}`
}
