/** Detects the end of a JSON object that arrives in pieces. Reads each character once. */
export class JsonEndDetector {
  #depth = 0
  #isInString = false
  #isEscaped = false
  #isReached = false

  read(piece: string): void {
    for (const character of piece) if (character.trim() !== '') this.#step(character)
  }

  /** True if the object is complete, and only white space has followed it. */
  get isAtEnd(): boolean {
    return this.#isReached
  }

  #step(character: string): void {
    this.#isReached = false
    if (this.#isEscaped) this.#isEscaped = false
    else if (this.#isInString) this.#stepInString(character)
    else if (character === '"') this.#isInString = true
    else if (character === '{') this.#depth++
    else if (character === '}') this.#isReached = --this.#depth === 0
  }

  #stepInString(character: string): void {
    if (character === '"') this.#isInString = false
    else if (character === '\\') this.#isEscaped = true
  }
}
