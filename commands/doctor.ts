import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../src/cli/command/command.ts'
import { exit } from '../src/cli/command/exit.ts'
import type { Check } from '../src/cli/doctor/check.ts'
import { runChecks } from '../src/cli/doctor/doctor.ts'
import { doctorJson, printChecks } from '../src/cli/doctor/print-checks.ts'
import { checkDataStore } from '../src/cli/doctor/store.ts'
import { CommandFailed } from '../src/cli/errors.ts'
import { checkDataDir } from '../src/cli/local.ts'
import { formatCounted } from '../src/cli/terminal/output.ts'

export default class Doctor extends WbCommand {
  static override summary = 'check your setup and suggest fixes'
  static override description =
    'Checks this machine, its configuration and data directory, the runtime, your identity, the keychain, clocks and providers. The exit status is 1 if a check fails; warnings do not affect it.'
  static override examples = ['wb doctor', 'wb doctor --deep', 'wb doctor --deep --json']
  static override flags = {
    deep: Flags.boolean({ summary: 'also check the whole store for damage and orphaned data' }),
  }
  protected override readonly usesFolderFiles = false

  async run() {
    const { flags } = await this.parse(Doctor)
    this.useProfile(this.profile)
    const { profile, session, signal, output } = this
    const pendingResults = runChecks({ profile, session, clock: this.io.clock, signal })
    const results = await this.waitFor('running checks', pendingResults)
    const { local } = results.config
    // Runs last: it blocks this process, which would delay the responses that the other checks wait for.
    const store =
      flags.deep && local
        ? await this.waitFor(
            'checking the store',
            checkDataStore(profile, results.server, checkDataDir(profile, local)),
          )
        : { checks: [] }
    const checks = [...results.checks, ...store.checks]
    if (output.json) output.value(doctorJson(profile, results, { ...store, checks }))
    else printChecks(output, checks)
    this.report(checks, flags.deep)
  }

  private report(checks: readonly Check[], isDeep: boolean): void {
    const { output } = this
    const countOf = (state: Check['state']) => checks.filter(check => check.state === state).length
    const [failureCount, warningCount] = [countOf('failed'), countOf('warning')]
    if (output.json) {
      // The object already lists all problems.
      if (failureCount > 0) this.exitCode = exit.failed
      return
    }
    if (failureCount > 0) throw new CommandFailed(`${formatCounted(failureCount, 'problem')} found`)
    output.note(
      warningCount === 0
        ? '  ✓ no problems found'
        : `  ✓ no failures, ${formatCounted(warningCount, 'warning')}`,
    )
    if (!isDeep) output.note('  wb doctor --deep    also checks the store')
  }
}
