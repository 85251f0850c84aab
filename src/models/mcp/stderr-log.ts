import type { Clock } from '../../base/clock.ts'
import { presentableMessage } from '../../base/redact.ts'

/** Maximum length of a line in UTF-16 units. Longer lines are truncated. */
const lineCharsMax = 4_000
const linesPerMinuteMax = 100
const minuteMs = 60_000

/** Logs the standard error output of a program line by line, without secrets and at a limited rate. */
export class StderrLog {
  #incompleteLine = ''
  #linesInMinute = 0
  #minuteStartedAt: number

  /**
   * @param redact   replaces the program's secrets in a text with a placeholder
   * @param logLine  called with each line to log
   */
  constructor(
    private readonly clock: Clock,
    private readonly redact: (text: string) => string,
    private readonly logLine: (line: string) => void,
  ) {
    this.#minuteStartedAt = clock.now()
  }

  write(text: string): void {
    const lines = (this.#incompleteLine + text).split('\n')
    this.#incompleteLine = lines.pop()!.slice(0, lineCharsMax)
    for (const line of lines) this.#line(line.trimEnd())
  }

  /** Logs the text after the last line break. */
  end(): void {
    this.#line(this.#incompleteLine)
    this.#incompleteLine = ''
  }

  #line(line: string): void {
    if (line === '') return
    if (this.clock.now() - this.#minuteStartedAt >= minuteMs) {
      this.#minuteStartedAt = this.clock.now()
      this.#linesInMinute = 0
    }
    this.#linesInMinute++
    if (this.#linesInMinute <= linesPerMinuteMax)
      this.logLine(presentableMessage(this.redact(line.slice(0, lineCharsMax))))
    else if (this.#linesInMinute === linesPerMinuteMax + 1)
      this.logLine('(further lines are omitted for up to a minute)')
  }
}
