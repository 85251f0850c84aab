import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../src/cli/command/command.ts'
import { exit } from '../src/cli/command/exit.ts'
import type { Check } from '../src/cli/doctor/check.ts'
import { lookAtAll } from '../src/cli/doctor/doctor.ts'
import { showChecks, toldOf } from '../src/cli/doctor/shown.ts'
import { lookThroughStore } from '../src/cli/doctor/store.ts'
import { PartlyFailed } from '../src/cli/faults.ts'
import { examine } from '../src/cli/local.ts'
import { counted } from '../src/cli/terminal/output.ts'

export default class Doctor extends WbCommand {
  static override summary = 'check your setup and suggest fixes'
  static override description =
    'Checks this machine, its configuration and data directory, the runtime, your identity, the keychain, clocks and providers. The exit status is 1 if a check fails, but not for warnings.'
  static override examples = ['wb doctor', 'wb doctor --deep', 'wb doctor --deep --json']
  static override flags = {
    deep: Flags.boolean({ summary: 'check the whole store for damage and orphaned data' }),
  }
  /** It is a check. */
  protected override readonly mindsFolder = false

  async run() {
    const { flags } = await this.parse(Doctor)
    this.talkTo(this.profile)
    const { profile, session, signal, output } = this
    const looking = lookAtAll({ profile, session, clock: this.io.clock, signal })
    const looked = await this.waitFor('looking', looking)
    const { local } = looked.config
    // Afterwards, as it keeps this process from hearing answers in time.
    const store =
      flags.deep && local
        ? await this.waitFor(
            'checking the store',
            lookThroughStore(profile, looked.server, examine(profile, local)),
          )
        : { checks: [] }
    const checks = [...looked.checks, ...store.checks]
    if (output.json) output.value(toldOf(profile, looked, { ...store, checks }))
    else showChecks(output, checks)
    this.end(checks, flags.deep)
  }

  private end(checks: readonly Check[], isDeep: boolean): void {
    const { output } = this
    const found = (state: Check['state']) => checks.filter(check => check.state === state).length
    const [failures, doubts] = [found('failed'), found('warning')]
    if (output.json) {
      // The object says all that is wrong.
      if (failures > 0) this.exitCode = exit.failed
      return
    }
    if (failures > 0) throw new PartlyFailed(`${counted(failures, 'problem')} found`)
    output.note(doubts === 0 ? '  ✓ no problems found' : `  ✓ no failures, ${counted(doubts, 'warning')}`)
    if (!isDeep) output.note('  wb doctor --deep    also checks the store')
  }
}
