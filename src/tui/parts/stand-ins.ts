/** A plane that no text has a meaning in; each of its signs takes one cell. */
const first = 0xf0000
/** More lines than are ever drawn between two looks at them. */
const kept = 32_768
const standIn = /[\u{f0000}-\u{f7fff}]/gu

/**
 * Signs that stand for whole lines while Ink lays them out. It would measure every line and take it apart into cells at
 * each frame, which costs more than all else that a frame needs; a sign it takes as it is, and where it writes one, the
 * line goes out.
 */
export class StandIns {
  readonly #lines: string[] = []
  #next = 0
  /** Lines of the last frame keep their signs, so that Ink sees what has not changed. */
  #last = new Map<string, string>()

  /** Signs for lines that are drawn once. */
  once(lines: readonly string[]): string {
    return lines.map(line => this.#signOf(line)).join('\n')
  }

  /** Signs for the lines of a frame. */
  frame(lines: readonly string[]): string {
    const signs = lines.map(line => [line, this.#last.get(line) ?? this.#signOf(line)] as const)
    this.#last = new Map(signs)
    return signs.map(([, sign]) => sign).join('\n')
  }

  /** What Ink writes, with the lines in place of their signs. */
  resolve(written: string): string {
    return written.replace(standIn, sign => this.#lines[sign.codePointAt(0)! - first] ?? '')
  }

  #signOf(line: string): string {
    const at = this.#next
    this.#next = (at + 1) % kept
    this.#lines[at] = line
    return String.fromCodePoint(first + at)
  }
}
