import type { Clock } from '../../base/clock.ts'
import { presentableMessage } from '../../base/redact.ts'

/** Maximum length of a line, in UTF-16 units. Longer lines are truncated. */
const lineCharsMax = 4_000
const linesPerMinuteMax = 100
const minuteMs = 60_000

/** Logs the standard error of a program line by line, without secrets and at a limited rate. */
export class StderrLog {
  #rest = ''
  #linesInMinute = 0
  #since: number

  /**
   * @param redact   replaces the program's secrets in a text
   * @param logLine  called with each line to log
   */
  constructor(
    private readonly clock: Clock,
    private readonly redact: (text: string) => string,
    private readonly logLine: (line: string) => void,
  ) {
    this.#since = clock.now()
  }

  write(text: string): void {
    const lines = (this.#rest + text).split('\n')
    this.#rest = lines.pop()!.slice(0, lineCharsMax)
    for (const line of lines) this.#line(line.trimEnd())
  }

  /** Logs the rest after the last line break. */
  end(): void {
    this.#line(this.#rest)
    this.#rest = ''
  }

  #line(line: string): void {
    if (line === '') return
    if (this.clock.now() - this.#since >= minuteMs) {
      this.#since = this.clock.now()
      this.#linesInMinute = 0
    }
    this.#linesInMinute++
    if (this.#linesInMinute <= linesPerMinuteMax)
      this.logLine(presentableMessage(this.redact(line.slice(0, lineCharsMax))))
    else if (this.#linesInMinute === linesPerMinuteMax + 1)
      this.logLine('(further lines are omitted for up to a minute)')
  }
}
