/** Detects the end of a JSON object that arrives in pieces. Reads each character once. */
export class JsonEnd {
  #depth = 0
  #isText = false
  #isEscaped = false
  #isReached = false

  read(piece: string): void {
    for (const character of piece) if (character.trim() !== '') this.#step(character)
  }

  /** True if the object is closed and only white space has followed. */
  get isReached(): boolean {
    return this.#isReached
  }

  #step(character: string): void {
    this.#isReached = false
    if (this.#isEscaped) this.#isEscaped = false
    else if (this.#isText) this.#stepInText(character)
    else if (character === '"') this.#isText = true
    else if (character === '{') this.#depth++
    else if (character === '}') this.#isReached = --this.#depth === 0
  }

  #stepInText(character: string): void {
    if (character === '"') this.#isText = false
    else if (character === '\\') this.#isEscaped = true
  }
}
