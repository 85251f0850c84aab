import * as Flags from '@oclif/core/flags'
import { pause } from '../src/base/pause.ts'
import { WbCommand } from '../src/cli/command/command.ts'
import { reportLines, toReport } from '../src/cli/command/report.ts'
import { UsageError } from '../src/cli/errors.ts'
import { readStatus, type StatusView } from '../src/cli/status/status.ts'
import { statusFields } from '../src/cli/status/status-fields.ts'
import { RedrawnBlock } from '../src/cli/terminal/redrawn-block.ts'
import { wrapLine } from '../src/cli/terminal/wrap.ts'
import { Unreachable } from '../src/client/unreachable.ts'
import { WbError } from '../src/contract/errors.ts'

const refreshMs = 2_000

export default class Status extends WbCommand {
  static override summary = 'show the runtime, workspace, jobs and your identity'
  static override examples = ['wb status', 'wb status --json']
  static override flags = {
    watch: Flags.boolean({ summary: 'refresh every 2 seconds until Ctrl-C' }),
  }

  async run() {
    const { flags } = await this.parse(Status)
    if (flags.watch && !this.output.interactive)
      throw new UsageError('--watch needs a terminal as standard output', ['wb status'])
    const view = await this.waitFor('loading', this.readStatus())
    if (flags.watch) return this.watch(view)
    this.output.fields(view.status, statusFields(view))
    for (const line of view.noWorkspace?.next ?? []) this.output.note(`  ${line}`)
  }

  private readStatus(): Promise<StatusView> {
    return readStatus(this.session, this.resolveContext)
  }

  /** Redraws the status. Shows errors in its place, because the runtime may become available again. */
  private async watch(first: StatusView): Promise<void> {
    const { output, signal } = this
    const screen = new RedrawnBlock(this.io.stdout)
    const footer = output.style.dim('  Ctrl-C to stop')
    const draw = (lines: readonly string[]) => screen.show([...lines, footer])
    draw(output.fieldLines(statusFields(first)))
    while (await this.waitForRefresh()) {
      try {
        draw(output.fieldLines(statusFields(await this.readStatus())))
      } catch (error) {
        if (signal.aborted) return
        if (!(error instanceof Unreachable || error instanceof WbError)) throw error
        const lines = reportLines(toReport(error), output.style)
        draw(lines.flatMap(line => wrapLine(line, output.width, 4)))
      }
    }
  }

  /** Waits for the next refresh. Returns false if the user presses Ctrl-C. */
  private async waitForRefresh(): Promise<boolean> {
    await pause(refreshMs, this.signal)
    return !this.signal.aborted
  }
}
