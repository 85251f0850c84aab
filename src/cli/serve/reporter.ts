import { hostFacts } from '../../base/host-facts.ts'
import { type Report, reportLines, reportOf } from '../command/report.ts'
import type { Io } from '../io.ts'
import type { LocalConfig, Voice } from '../local.ts'
import type { Output } from '../terminal/output.ts'
import { BufferedLog } from './buffered-log.ts'
import { formatLogLine } from './format-log-line.ts'
import type { ServeEvents } from './serve.ts'
import type { Serving } from './serving.ts'
import { openAccessWarning, welcome } from './welcome.ts'

/** Messages of `wb serve`: text for a terminal, or JSON lines on stdout with `--json`. */
export class ServeReporter implements ServeEvents {
  readonly #log: BufferedLog

  constructor(
    private readonly output: Output,
    private readonly io: Pick<Io, 'stdout' | 'stderr'>,
    private readonly about: { dataDir: string; isDefaultDataDir: boolean; version: string; verbose: boolean },
  ) {
    this.#log = new BufferedLog(output.json ? this.#jsonLog() : this.#terminalLog())
  }

  #jsonLog(): { write(line: string): unknown } {
    return this.output.hasFilter ? { write: line => this.#printJsonLine(JSON.parse(line)) } : this.io.stdout
  }

  /** Prints a JSON line. Reports an error of the filter expression without ending the server. */
  #printJsonLine(value: unknown): void {
    try {
      this.output.line(value)
    } catch (error) {
      this.#printReport(reportOf(error))
    }
  }

  /** Formats log lines for a terminal without `--verbose`. The log contains the details. */
  #terminalLog(): { write(line: string): unknown } {
    if (this.about.verbose || !this.io.stderr.isTTY) return this.io.stderr
    return { write: line => this.output.trace(formatLogLine(line)) }
  }

  voice({ config }: LocalConfig): Voice {
    const terminalLevel = this.about.verbose ? 'info' : 'warn'
    return { level: this.output.json ? config.runtime.logLevel : terminalLevel, stream: this.#log }
  }

  /** Prints the first message, and then the log lines before it. */
  async started(serving: Serving): Promise<void> {
    const { output } = this
    if (serving.runtime.fault !== undefined) this.#reportRescueMode(serving)
    else if (output.json) this.#printEvent('ready', serving)
    else output.result(await this.#welcome(serving))
    this.release()
    const open = await openAccessWarning(this.#details(serving))
    if (open) output.warn(`  ${output.errorStyle.bad('!')} ${open}`)
    for (const warning of serving.config.warnings) output.warn(`  ! ${warning}`)
  }

  /** Stops buffering the log, after a start or a failure. */
  release(): void {
    this.#log.release()
  }

  restarting(): void {
    this.output.note('  restarting: waiting for requests in progress')
  }

  restarted(serving: Serving): void {
    if (serving.runtime.fault !== undefined) this.#reportRescueMode(serving)
    else if (this.output.json) this.#printEvent('restarted', serving)
    else this.output.warn(`  ${this.output.errorStyle.good('✓')} restarted at ${serving.url}`)
    for (const warning of serving.config.warnings) this.output.warn(`  ! ${warning}`)
  }

  notRestarted(error: unknown): void {
    const report = reportOf(error)
    const { kind, code = kind, message } = report
    if (this.output.json) this.#printJsonLine({ event: 'not restarted', error: { code, message } })
    else
      this.#printReport({ ...report, message: `not restarted: ${message}` }, [
        '    the server continues with its previous configuration',
      ])
  }

  #reportRescueMode(serving: Serving): void {
    const report = reportOf(serving.runtime.fault)
    const { kind, code = kind, message } = report
    if (this.output.json) return void this.#printEvent('rescue', serving, { error: { code, message } })
    this.#printReport({ ...report, message: `rescue mode: ${message}` }, [
      '',
      `    ${serving.url}/setup-status    shows the state; most other requests are rejected`,
      `    ${recoveryCommand(serving.config)}`,
    ])
  }

  #printReport(report: Report, more: readonly string[] = []): void {
    this.output.trace([...reportLines(report, this.output.errorStyle), ...more].join('\n'))
  }

  #printEvent(event: string, { url }: Serving, more: object = {}): void {
    this.#printJsonLine({ event, url, pid: hostFacts.pid, dataDir: this.about.dataDir, ...more })
  }

  #welcome(serving: Serving): Promise<string> {
    return welcome(this.#details(serving), this.output.style)
  }

  #details({ url, loopback, config, runtime }: Serving) {
    return { url, loopback, config, runtime, ...this.about }
  }
}

/** Returns the command to run when the problem is fixed. */
function recoveryCommand({ config: { auth } }: LocalConfig): string {
  const restart = 'wb api POST /setup/restart    in another terminal, after you have fixed the cause'
  if (auth.mode === 'disabled') return restart
  if (auth.bootstrapTokenRef !== null) return `WB_API_KEY=BOOTSTRAP_TOKEN ${restart}`
  return 'Ctrl-C, then wb serve    after you have fixed the cause'
}
