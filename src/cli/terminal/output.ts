import type { Filter } from './jq.ts'
import { ago, clockTime, due } from './moment.ts'
import type { Style } from './style.ts'
import { styleFor } from './style.ts'
import {
  displayWidth,
  harmless,
  pad,
  plain,
  plainJson,
  plainLine,
  truncate,
  withoutTokens,
} from './terminal-text.ts'
import { wrapLine, wrapWords } from './wrap.ts'

/** A stream of a terminal or a pipe. */
export interface Sink {
  write(text: string): unknown
  readonly isTTY?: boolean
  readonly columns?: number
}

export interface OutputOptions {
  stdout: Sink
  stderr: Sink
  json: boolean
  /** Of `--jq`: what it makes of an object is printed instead of it, and `json` counts as true. */
  filter?: Filter
  quiet: boolean
  colour: boolean
  /** Flags that a line to type next repeats, after a blank. */
  contextFlags?: string
  now: () => number
}

/** A value of a table. Times are ISO-8601. */
export type Cell = string | number | boolean | null | undefined

/** A field of one thing: a value, a time that has passed, or one that is mostly still to come. */
export type Field = Cell | { time: string | null } | { due: string | null }

/** One column: how its cells are got, and how a terminal shows them. */
export interface Column<T> {
  of(row: T): Cell
  /**
   * `free` text gives way when the line is too long; a `time` is told relative to now, and a `due` one is mostly still
   * to come. Default: `text`.
   */
  as?: 'text' | 'free' | 'time' | 'due' | 'count'
  /** Cells that it takes at least in a row that is shown alone. */
  least?: number
  /** Rows whose cell stands out, as something was refused or failed. */
  isBad?(row: T): boolean
  /** Shown only in a pipe, as a person does not decide by it. */
  piped?: boolean
}

export interface List<T> {
  /** By heading. In a pipe the columns are tab-separated, without headings. */
  columns: Record<string, Column<T>>
  /** What stands on stderr when there is nothing: the fact, then the line to type. */
  empty: readonly string[]
  /** Of how many the rows are; more than the rows when the list was cut. */
  total?: string
}

const gap = '  '
const freeMin = 12
/** Blanks before what follows the first line of a row that takes several. */
const rowHang = 4
const widthDefault = 80

/** The one result on stdout, and everything else on stderr. */
export class Output {
  readonly style: Style
  readonly errorStyle: Style
  /** True when a person reads the result in a terminal. */
  readonly interactive: boolean
  readonly json: boolean

  constructor(private readonly options: OutputOptions) {
    this.json = options.json || options.filter !== undefined
    this.interactive = options.stdout.isTTY === true && !this.json
    this.style = styleFor(options.colour && options.stdout.isTTY === true)
    this.errorStyle = styleFor(options.colour && options.stderr.isTTY === true)
  }

  /** True when `--jq` makes something else of what is printed. */
  get filters(): boolean {
    return this.options.filter !== undefined
  }

  /** Columns of the terminal; a pipe has no end. */
  get width(): number {
    return this.options.stdout.isTTY
      ? (this.options.stdout.columns ?? widthDefault)
      : Number.POSITIVE_INFINITY
  }

  /** Write to stdout; a pipe gets it as it is. */
  result(text: string): void {
    const shown = this.options.stdout.isTTY ? harmless(text) : text
    this.options.stdout.write(shown.endsWith('\n') ? shown : `${shown}\n`)
  }

  /** The API's own object. */
  value(value: unknown): void {
    for (const text of this.texts(value, this.options.stdout.isTTY ? 2 : undefined)) this.result(text)
  }

  /** One object of several, on a line of its own. */
  line(value: unknown): void {
    for (const text of this.texts(value)) this.result(text)
  }

  /**
   * An object as it is printed: its JSON, or what `--jq` makes of it, where a string stands for itself.
   *
   * @throws UsageError  the expression is not for such an object
   */
  texts(value: unknown, indent?: number): string[] {
    const { filter, stdout } = this.options
    if (!filter) return [plainJson(value, indent)]
    const own = (text: string) => (stdout.isTTY ? plain(text) : text)
    return filter(value).map(made => (typeof made === 'string' ? own(made) : plainJson(made, indent)))
  }

  /** What was made or changed: a line in a terminal, the id alone in a pipe, the object with `--json`. */
  made(value: unknown, id: string, line: string): void {
    if (this.json) this.value(value)
    else this.result(this.interactive ? `  ${this.style.good('✓')} ${plainLine(line)}` : plainLine(id))
  }

  /** What is gone: a line beside the result, its id with `--json`. */
  deleted(id: string, line: string): void {
    if (this.json) this.value({ deleted: id })
    else this.note(`  ✓ ${line}`)
  }

  /** Say something beside the result; silent with `--quiet`. */
  note(text: string): void {
    if (!this.options.quiet) this.warn(text)
  }

  /** A line to type next, where this command worked. */
  next(line: string): void {
    this.note(`  ${line}${this.contextFlags}`)
  }

  /** Flags that a line to type next repeats, after a blank; empty where there are none. */
  get contextFlags(): string {
    return this.options.contextFlags ?? ''
  }

  /** Say what must be known; not silenced. */
  warn(text: string): void {
    const { isTTY, columns = widthDefault } = this.options.stderr
    this.trace(isTTY ? wrapWords(text, columns) : text)
  }

  /** Write to stderr, with its lines as they are, and without tokens: what is shown beside a result ends in logs. */
  trace(text: string): void {
    this.options.stderr.write(`${withoutTokens(harmless(text))}\n`)
  }

  /**
   * A table in a terminal, tab-separated lines in a pipe, an array with `--json`. A table leaves out columns that hold
   * nothing; lines of a pipe have them all.
   */
  list<T>(rows: readonly T[], list: List<T>): void {
    if (this.json) this.value(rows)
    else if (rows.length === 0) this.note(list.empty.map(line => `  ${line}`).join('\n'))
    else this.#rows(rows, list)
  }

  /** One row of a list that goes on: aligned in a terminal, tab-separated in a pipe, a line of JSON with `--json`. */
  row<T>(row: T, columns: Record<string, Column<T>>): void {
    const all = Object.values(columns)
    if (this.json) this.line(row)
    else if (!this.interactive) this.result(all.map(column => raw(column.of(row))).join('\t'))
    else {
      for (const line of this.#alone(row, all)) this.result(line)
    }
  }

  /** A row that stands alone: cut to a line where that leaves enough of it, else over several lines. */
  #alone<T>(row: T, all: readonly Column<T>[]): string[] {
    const columns = all.filter(({ piped }) => !piped)
    const texts = columns.map(column => this.#single(column, row))
    const widths = texts.map((text, index) => Math.max(columns[index]!.least ?? 0, displayWidth(text)))
    if (this.#fit(columns, widths)) return [`${gap}${this.#line(columns, row, texts, widths)}`]
    const whole = texts.map((text, index) => this.#marked(columns[index]!, row, text))
    return wrapLine(`${gap}${whole.join(gap)}`, this.width, rowHang)
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
        const side = column.as === 'count' ? 'left' : 'right'
        return pad(cut, widths[index]!, side).replace(cut, () => this.#marked(column, row, cut))
      })
      .join(gap)
      .trimEnd()
  }

  /** A cell of a row that stays while time goes on: a time is that of the clock. */
  #single<T>(column: Column<T>, row: T): string {
    const cell = column.of(row)
    return column.as === 'time' && !isEmpty(cell) ? clockTime(String(cell)) : this.#cell(column, row)
  }

  #rows<T>(rows: readonly T[], list: List<T>): void {
    const columns = Object.entries(list.columns)
    if (this.interactive) for (const line of this.#table(rows, columns)) this.result(line)
    else for (const row of rows) this.result(columns.map(([, column]) => raw(column.of(row))).join('\t'))
    if (list.total !== undefined) this.note(this.errorStyle.dim(`  ${count(rows.length)} of ${list.total}`))
  }

  /** One thing: its fields below each other in a terminal and in a pipe, the object with `--json`. */
  fields(value: unknown, fields: Record<string, Field>): void {
    if (this.json) this.value(value)
    else for (const line of this.fieldLines(fields)) this.result(line)
  }

  /** The same as lines, for a place that is written over. */
  fieldLines(fields: Record<string, Field>): string[] {
    const shown = Object.entries(fields).filter(
      ([, cell]) => cell !== undefined && cell !== null && cell !== '',
    )
    const width = Math.max(...shown.map(([name]) => displayWidth(name)))
    return shown.flatMap(([name, cell]) => {
      const moment = momentOf(cell)
      if (!this.interactive) return [`${name}\t${plainLine(String(moment ? (moment.iso ?? '') : cell))}`]
      return this.#named(pad(name, width), moment ? this.#moment(moment.as, moment.iso) : plain(String(cell)))
    })
  }

  #named(name: string, text: string): string[] {
    const hang = gap.length + displayWidth(name) + gap.length
    return wrapLine(`${gap}${this.style.dim(name)}${gap}${text}`, this.width, hang)
  }

  /** Rows below their headings; below each other, as one thing is shown, where the terminal is too narrow for that. */
  *#table<T>(rows: readonly T[], all: [string, Column<T>][]): Generator<string> {
    const shown = all.filter(([, column]) => !column.piped && rows.some(row => !isEmpty(column.of(row))))
    const [headings, columns] = [shown.map(([heading]) => heading), shown.map(([, column]) => column)]
    const cells = rows.map(row => columns.map(column => this.#cell(column, row)))
    const widths = headings.map((heading, index) =>
      Math.max(displayWidth(heading), ...cells.map(line => displayWidth(line[index]!))),
    )
    if (!this.#fit(columns, widths)) {
      for (const [at, texts] of cells.entries()) yield* this.#stack(rows[at]!, { headings, columns, texts })
      return
    }
    const heads = columns.map(({ as }) => ({ of: () => '', as }))
    yield this.style.dim(`${gap}${this.#line(heads, undefined, headings, widths)}`)
    for (const [at, texts] of cells.entries()) yield `${gap}${this.#line(columns, rows[at]!, texts, widths)}`
  }

  *#stack<T>(
    row: T,
    { headings, columns, texts }: { headings: string[]; columns: Column<T>[]; texts: string[] },
  ): Generator<string> {
    const width = Math.max(...headings.map(displayWidth))
    for (const [index, column] of columns.entries())
      if (!isEmpty(column.of(row)))
        yield* this.#named(pad(headings[index]!, width), this.#marked(column, row, texts[index]!))
    yield ''
  }

  #marked<T>({ isBad }: Column<T>, row: T, text: string): string {
    return isBad?.(row) ? this.style.bad(text) : text
  }

  /** Take what a line is too long from what is then the widest column of free text; false where that is not enough. */
  #fit<T>(columns: readonly Column<T>[], widths: number[]): boolean {
    const over = () =>
      gap.length + widths.reduce((sum, width) => sum + width + gap.length, -gap.length) - this.width
    const free = columns.flatMap(({ as }, index) => (as === 'free' ? [index] : []))
    for (let excess = over(); excess > 0; excess--) {
      const widest = free.reduce((best, index) => (widths[index]! > (widths[best] ?? 0) ? index : best), -1)
      if (widest < 0 || widths[widest]! <= freeMin) return false
      widths[widest]!--
    }
    return true
  }

  #cell<T>(column: Column<T>, row: T): string {
    const cell = column.of(row)
    if (isEmpty(cell)) return '–'
    if (column.as === 'time' || column.as === 'due') return this.#moment(column.as, String(cell))
    return typeof cell === 'number' ? count(cell) : plainLine(String(cell))
  }

  #moment(as: 'time' | 'due', iso: string | null): string {
    if (iso === null) return '–'
    return (as === 'time' ? ago : due)(Date.parse(iso), this.options.now())
  }
}

function momentOf(field: Field): { as: 'time' | 'due'; iso: string | null } | undefined {
  if (typeof field !== 'object' || field === null) return undefined
  return 'time' in field ? { as: 'time', iso: field.time } : { as: 'due', iso: field.due }
}

function raw(cell: Cell): string {
  return cell === null || cell === undefined ? '' : plainLine(String(cell))
}

function isEmpty(cell: Cell): cell is null | undefined | '' {
  return cell === null || cell === undefined || cell === ''
}

/** A whole number with separators: 1,204. */
export function count(value: number): string {
  return value.toLocaleString('en-US')
}

/** A number of things in words: 1 chunk, 1,204 chunks. */
export function counted(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`
}
