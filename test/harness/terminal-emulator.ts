/** Control sequences, line breaks and text, in the order of a terminal's output. */
const pieces = /\x1b\[([?>]?)([\d;]*)([@-~])|\x1b[^[]|([\r\n\b\x07])|([^\x1b\r\n\b\x07]+)/g

/**
 * A minimal terminal for the screens of Workbase: scrolled lines, a cursor, and erase sequences. Every character
 * is one cell wide.
 */
export class TerminalEmulator {
  readonly #lines: string[][] = [[]]
  /** Index of the first visible line. */
  #top = 0
  #x = 0
  #y = 0
  /** Incomplete sequence at the end of the last write. */
  #rest = ''
  /** The alternate screen is active, and output to it is ignored. */
  #isAway = false

  constructor(
    private readonly columns: number,
    private readonly rows: number,
  ) {}

  /** All lines, including those that scrolled away. */
  get lines(): string[] {
    return this.#lines.map(line =>
      Array.from(line, sign => sign ?? ' ')
        .join('')
        .trimEnd(),
    )
  }

  write(output: string): void {
    const text = this.#rest + output
    const last = text.lastIndexOf('\x1b')
    const isWhole = last < 0 || /^\x1b(?:\[[?>]?[\d;]*[@-~]|[^[])/.test(text.slice(last))
    this.#rest = isWhole ? '' : text.slice(last)
    for (const [, mark, numbers = '', final, control, signs] of (isWhole
      ? text
      : text.slice(0, last)
    ).matchAll(pieces)) {
      if (mark === '?' && numbers === '1049') this.#isAway = final === 'h'
      if (this.#isAway) continue
      if (control) this.#control(control)
      else if (signs) for (const sign of signs) this.#put(sign)
      else if (final && !mark) this.#sequence(final, numbers.split(';').map(Number))
    }
  }

  #control(control: string): void {
    if (control === '\r') this.#x = 0
    else if (control === '\b') this.#x = Math.max(0, this.#x - 1)
    else if (control === '\n') this.#down()
  }

  #down(): void {
    this.#y++
    if (this.#y === this.#lines.length) this.#lines.push([])
    this.#top = Math.max(this.#top, this.#y - this.rows + 1)
  }

  #put(sign: string): void {
    if (this.#x === this.columns) {
      this.#x = 0
      this.#down()
    }
    this.#lines[this.#y]![this.#x++] = sign
  }

  #sequence(final: string, [first = 0, second = 0]: number[]): void {
    const by = Math.max(1, first)
    switch (final) {
      case 'A':
        this.#y = Math.max(this.#top, this.#y - by)
        break
      case 'B':
        for (let left = by; left > 0 && this.#y < this.#top + this.rows - 1; left--) this.#down()
        break
      case 'C':
        this.#x = Math.min(this.columns - 1, this.#x + by)
        break
      case 'D':
        this.#x = Math.max(0, this.#x - by)
        break
      case 'G':
        this.#x = by - 1
        break
      case 'H':
        this.#y = this.#top
        for (let left = by - 1; left > 0; left--) this.#down()
        this.#x = Math.max(1, second) - 1
        break
      case 'J':
        this.#lines[this.#y]!.length = Math.min(this.#x, this.#lines[this.#y]!.length)
        this.#lines.length = this.#y + 1
        break
      case 'K':
        if (first === 2) this.#lines[this.#y] = []
        else this.#lines[this.#y]!.length = Math.min(this.#x, this.#lines[this.#y]!.length)
    }
  }
}
