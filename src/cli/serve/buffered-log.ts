/** A log that buffers its lines until {@link release}, so that the startup message of a server is printed first. */
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
