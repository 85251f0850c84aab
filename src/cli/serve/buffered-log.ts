/** Log that buffers lines until the startup line for other programs is written. */
export class BufferedLog {
  #buffer: string[] | undefined = []

  constructor(private readonly stream: { write(line: string): unknown }) {}

  write(line: string): void {
    if (this.#buffer) this.#buffer.push(line)
    else this.stream.write(line)
  }

  /** Writes the buffered lines, and stops buffering. */
  release(): void {
    for (const line of this.#buffer ?? []) this.stream.write(line)
    this.#buffer = undefined
  }
}
