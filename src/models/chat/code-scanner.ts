const fencePattern = /^ {0,3}(`{3,}|~{3,})/
/** Number of characters at the start of a line that are searched for a fence. */
const lineStartChars = 16

/** Detects code blocks and code spans in streamed Markdown. Reads each character once. */
export class CodeScanner {
  #openFence = ''
  #lineStart = ''
  #backtickRuns = 0
  #previous = ''

  read(text: string): void {
    for (const character of text) this.#step(character)
  }

  /** True if the next character is in a code block, or in a code span that started on this line. */
  get isInside(): boolean {
    return this.#openFence !== '' || fencePattern.test(this.#lineStart) || this.#backtickRuns % 2 === 1
  }

  #step(character: string): void {
    if (character === '\n') this.#endLine()
    else {
      if (this.#lineStart.length < lineStartChars) this.#lineStart += character
      if (character === '`' && this.#previous !== '`') this.#backtickRuns++
    }
    this.#previous = character
  }

  #endLine(): void {
    const [, fenceMark] = fencePattern.exec(this.#lineStart) ?? []
    if (fenceMark !== undefined && this.#openFence === '') this.#openFence = fenceMark
    else if (fenceMark?.startsWith(this.#openFence)) this.#openFence = ''
    this.#lineStart = ''
    this.#backtickRuns = 0
  }
}
