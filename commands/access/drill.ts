import { printDrill } from '../../src/cli/access/print-drill.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { exit } from '../../src/cli/command/exit.ts'
import { UsageError } from '../../src/cli/errors.ts'
import { drillAccess, readConfig } from '../../src/cli/local.ts'

export default class AccessDrill extends WbCommand {
  static override summary = 'prove that no route leaks hidden documents'
  static override description =
    'Copies the store of this machine to a temporary folder, creates canary documents for up to 12 principals in the copy, and requests them from every content route as each of these principals. Your data does not change, no model or other server is called, and the report contains no content. The exit status is 1 if a principal gets what it may not see, or does not get what it may see.'
  static override examples = [
    'wb access drill --workspace demo --as-operator',
    'wb access drill --as-operator --json > drill-2026-01-31.json',
  ]

  async run() {
    await this.parse(AccessDrill)
    const { profile, io, output, progress, signal } = this
    if (profile.url !== undefined)
      throw new UsageError('a drill copies the store, so it needs the data directory of the runtime', [
        'Run the command on the machine of the runtime, with --local and --data-dir.',
      ])
    if (!profile.asOperator)
      throw new UsageError('a drill copies the store and creates API keys in the copy', [
        `${this.commandName} --as-operator`,
      ])
    this.requireTrustedFolder()
    const { workspaceId, name, rlacEnabled } = await this.workspace()
    if (!rlacEnabled)
      throw new UsageError(`row-level access is off in workspace ${name}, so everyone sees everything`, [
        `wb workspaces update ${name} --rlac`,
      ])
    const report = await drillAccess(profile, await readConfig(profile, io), {
      workspaceId,
      workspaceName: name,
      signal,
      onProgress: (done, total) => progress.step({ label: 'testing', done, total, unit: 'principals' }),
      logSettings: { level: 'silent', stream: io.stderr },
    })
    progress.end()
    printDrill(output, report)
    if (report.findings.length > 0) this.exitCode = exit.failed
  }
}
