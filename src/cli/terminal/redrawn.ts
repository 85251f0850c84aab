import type { Sink } from './output.ts'
import { displayWidth, plain } from './terminal-text.ts'

/** Lines of a terminal over which the next ones are written. */
export class Redrawn {
  /** Rows from the first line to the cursor. */
  #height = 0

  constructor(private readonly stream: Sink) {}

  show(lines: readonly string[]): void {
    const back = this.#height === 0 ? '' : `\x1b[${this.#height}A`
    this.stream.write(`${back}${lines.map(line => `${line}\x1b[K\n`).join('')}\x1b[J`)
    this.#height = lines.reduce((rows, line) => rows + this.#rows(line), 0)
  }

  /** A word that is wider than the terminal takes several. */
  #rows(line: string): number {
    return Math.max(1, Math.ceil(displayWidth(plain(line)) / (this.stream.columns ?? Infinity)))
  }
}
