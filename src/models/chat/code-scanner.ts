const fence = /^ {0,3}(`{3,}|~{3,})/
/** Maximum length of the beginning of a line that can contain a fence. */
const headChars = 16

/** Finds code in streamed Markdown. Reads each character once. */
export class CodeScanner {
  #fence = ''
  #head = ''
  #spans = 0
  #last = ''

  read(text: string): void {
    for (const character of text) this.#step(character)
  }

  /** Returns true if the next character is in a code block, or in a code span of the line. */
  get isInside(): boolean {
    return this.#fence !== '' || fence.test(this.#head) || this.#spans % 2 === 1
  }

  #step(character: string): void {
    if (character === '\n') this.#endLine()
    else {
      if (this.#head.length < headChars) this.#head += character
      if (character === '`' && this.#last !== '`') this.#spans++
    }
    this.#last = character
  }

  #endLine(): void {
    const [, mark] = fence.exec(this.#head) ?? []
    if (mark !== undefined && this.#fence === '') this.#fence = mark
    else if (mark?.startsWith(this.#fence)) this.#fence = ''
    this.#head = ''
    this.#spans = 0
  }
}
