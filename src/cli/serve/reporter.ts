import { hostFacts } from '../../base/host-facts.ts'
import { type Report, reportLines, toReport } from '../command/report.ts'
import type { Io } from '../io.ts'
import type { LocalConfig, LogSettings } from '../local.ts'
import type { Output } from '../terminal/output.ts'
import { BufferedLog } from './buffered-log.ts'
import { formatLogLine } from './format-log-line.ts'
import type { RestartableServer } from './restartable-server.ts'
import type { ServeEvents } from './serve.ts'
import { openAccessWarning, welcome } from './welcome.ts'

/** Messages of `wb serve`: text for a terminal, or JSON lines on stdout with `--json`. */
export class ServeReporter implements ServeEvents {
  readonly #log: BufferedLog

  constructor(
    private readonly output: Output,
    private readonly io: Pick<Io, 'stdout' | 'stderr'>,
    private readonly options: {
      dataDir: string
      isDefaultDataDir: boolean
      version: string
      verbose: boolean
    },
  ) {
    this.#log = new BufferedLog(output.json ? this.#jsonLog() : this.#terminalLog())
  }

  #jsonLog(): { write(line: string): unknown } {
    return this.output.hasFilter ? { write: line => this.#printJsonLine(JSON.parse(line)) } : this.io.stdout
  }

  /** Prints a JSON line. An error in the `--jq` expression is reported, but does not stop the server. */
  #printJsonLine(value: unknown): void {
    try {
      this.output.line(value)
    } catch (error) {
      this.#printReport(toReport(error))
    }
  }

  /** Returns the log stream for use without `--json`. In a terminal without `--verbose`, it formats the lines. */
  #terminalLog(): { write(line: string): unknown } {
    if (this.options.verbose || !this.io.stderr.isTTY) return this.io.stderr
    return { write: line => this.output.trace(formatLogLine(line)) }
  }

  logSettings({ config }: LocalConfig): LogSettings {
    const terminalLevel = this.options.verbose ? 'info' : 'warn'
    return { level: this.output.json ? config.runtime.logLevel : terminalLevel, stream: this.#log }
  }

  /** Prints the startup message, then the buffered log lines, then warnings. */
  async started(server: RestartableServer): Promise<void> {
    const { output } = this
    if (server.runtime.fault !== undefined) this.#reportRescueMode(server)
    else if (output.json) this.#printEvent('ready', server)
    else output.result(await this.#welcome(server))
    this.release()
    const accessWarning = await openAccessWarning(this.#details(server))
    if (accessWarning) output.warn(`  ${output.errorStyle.bad('!')} ${accessWarning}`)
    for (const warning of server.config.warnings) output.warn(`  ! ${warning}`)
  }

  /** Writes the buffered log lines and stops buffering. Called after the server has started or failed to start. */
  release(): void {
    this.#log.release()
  }

  restarting(): void {
    this.output.note('  restarting: waiting for requests in progress')
  }

  restarted(server: RestartableServer): void {
    if (server.runtime.fault !== undefined) this.#reportRescueMode(server)
    else if (this.output.json) this.#printEvent('restarted', server)
    else this.output.warn(`  ${this.output.errorStyle.good('✓')} restarted at ${server.url}`)
    for (const warning of server.config.warnings) this.output.warn(`  ! ${warning}`)
  }

  notRestarted(error: unknown): void {
    const report = toReport(error)
    const { kind, code = kind, message } = report
    if (this.output.json) this.#printJsonLine({ event: 'not restarted', error: { code, message } })
    else
      this.#printReport({ ...report, message: `not restarted: ${message}` }, [
        '    the server continues with its previous configuration',
      ])
  }

  #reportRescueMode(server: RestartableServer): void {
    const report = toReport(server.runtime.fault)
    const { kind, code = kind, message } = report
    if (this.output.json) return void this.#printEvent('rescue', server, { error: { code, message } })
    this.#printReport({ ...report, message: `rescue mode: ${message}` }, [
      '',
      `    ${server.url}/setup-status    shows the state; most other requests are rejected`,
      `    ${recoveryCommand(server.config)}`,
    ])
  }

  #printReport(report: Report, extraLines: readonly string[] = []): void {
    this.output.trace([...reportLines(report, this.output.errorStyle), ...extraLines].join('\n'))
  }

  #printEvent(event: string, { url }: RestartableServer, extraFields: object = {}): void {
    this.#printJsonLine({ event, url, pid: hostFacts.pid, dataDir: this.options.dataDir, ...extraFields })
  }

  #welcome(server: RestartableServer): Promise<string> {
    return welcome(this.#details(server), this.output)
  }

  #details({ url, loopback, config, runtime }: RestartableServer) {
    return { url, loopback, config, runtime, ...this.options }
  }
}

/** Returns the command to run after the problem is fixed. */
function recoveryCommand({ config: { auth } }: LocalConfig): string {
  const restart = 'wb api POST /setup/restart    in another terminal, after you have fixed the cause'
  if (auth.mode === 'disabled') return restart
  if (auth.bootstrapTokenRef !== null) return `WB_API_KEY=BOOTSTRAP_TOKEN ${restart}`
  return 'Ctrl-C, then wb serve    after you have fixed the cause'
}
