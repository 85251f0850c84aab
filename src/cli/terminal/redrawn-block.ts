import type { Sink } from './output.ts'
import { displayWidth, plain } from './terminal-text.ts'

/** A block of terminal lines that is redrawn in place. */
export class RedrawnBlock {
  /** Number of terminal rows from the first line to the cursor. */
  #height = 0

  constructor(private readonly stream: Sink) {}

  show(lines: readonly string[]): void {
    const moveUp = this.#height === 0 ? '' : `\x1b[${this.#height}A`
    this.stream.write(`${moveUp}${lines.map(line => `${line}\x1b[K\n`).join('')}\x1b[J`)
    this.#height = lines.reduce((rows, line) => rows + this.#rows(line), 0)
  }

  /** Returns the number of terminal rows that a line occupies. A line with a wide word can occupy several. */
  #rows(line: string): number {
    return Math.max(1, Math.ceil(displayWidth(plain(line)) / (this.stream.columns ?? Infinity)))
  }
}
