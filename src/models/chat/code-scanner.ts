const fence = /^ {0,3}(`{3,}|~{3,})/
/** Enough of a line to see a fence: its indent and its marks. */
const headChars = 16

/** Follows Markdown, while it arrives, to tell code from prose. Reads each character once. */
export class CodeScanner {
  #fence = ''
  #head = ''
  #spans = 0
  #last = ''

  read(text: string): void {
    for (const character of text) this.#step(character)
  }

  /** The next character is inside a fence, or inside a code span of the line. */
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
