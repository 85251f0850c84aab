/** A buffer that grows as bytes are appended. */
export class ByteWriter {
  #bytes = Buffer.allocUnsafe(8_192)
  #length = 0

  get length(): number {
    return this.#length
  }

  /** Appends an integer from 0 to 2^28 - 1 as a varint (unsigned LEB128): 7 bits per byte, the lowest bits first. */
  appendVarint(value: number): void {
    this.#reserve(4)
    let rest = value
    while (rest > 127) {
      this.#bytes[this.#length++] = (rest & 127) | 128
      rest >>>= 7
    }
    this.#bytes[this.#length++] = rest
  }

  /** Appends one byte per character, for characters up to U+00FF. */
  appendLatin1(text: string): void {
    this.#reserve(text.length)
    this.#bytes.write(text, this.#length, 'latin1')
    this.#length += text.length
  }

  append(other: ByteWriter): void {
    this.#reserve(other.#length)
    other.#bytes.copy(this.#bytes, this.#length, 0, other.#length)
    this.#length += other.#length
  }

  /** The appended bytes, valid until the next change. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  clear(): void {
    this.#length = 0
  }

  #reserve(more: number): void {
    if (this.#length + more <= this.#bytes.length) return
    const grown = Buffer.allocUnsafe(2 * (this.#length + more))
    grown.set(this.bytes)
    this.#bytes = grown
  }
}
