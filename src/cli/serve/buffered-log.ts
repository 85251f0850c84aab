/** Log that buffers lines until the startup line for other programs is written. */
export class BufferedLog {
  #held: string[] | undefined = []

  constructor(private readonly stream: { write(line: string): unknown }) {}

  write(line: string): void {
    if (this.#held) this.#held.push(line)
    else this.stream.write(line)
  }

  /** Writes the buffered lines, and stops buffering. */
  release(): void {
    for (const line of this.#held ?? []) this.stream.write(line)
    this.#held = undefined
  }
}
