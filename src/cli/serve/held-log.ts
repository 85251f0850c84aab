/** Lines of a log that wait until the line that a program waits for was written. */
export class HeldLog {
  #held: string[] | undefined = []

  constructor(private readonly stream: { write(line: string): unknown }) {}

  write(line: string): void {
    if (this.#held) this.#held.push(line)
    else this.stream.write(line)
  }

  /** Write what has waited, and from now on every line at once. */
  release(): void {
    for (const line of this.#held ?? []) this.stream.write(line)
    this.#held = undefined
  }
}
