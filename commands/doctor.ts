import * as Flags from '@oclif/core/flags'
import { systemClock } from '../src/base/clock.ts'
import { WbCommand } from '../src/cli/command.ts'
import { type Check, faultFound } from '../src/cli/doctor/check.ts'
import { lookAtAll } from '../src/cli/doctor/doctor.ts'
import { showChecks } from '../src/cli/doctor/shown.ts'
import { storeFound } from '../src/cli/doctor/store.ts'
import { exit } from '../src/cli/exit.ts'
import { PartlyFailed } from '../src/cli/faults.ts'
import { type Announcement, type Examined, examine, type LocalConfig } from '../src/cli/local.ts'
import { counted } from '../src/cli/output.ts'

export default class Doctor extends WbCommand {
  static override summary = 'say whether all that wb needs is in order, and what to type where it is not'
  static override description =
    'Looks at this machine, its configuration and data directory, the runtime, who you are there, the keychain, clocks and providers. A failure is status 1; a warning is not.'
  static override examples = ['wb doctor', 'wb doctor --deep', 'wb doctor --deep --json']
  static override flags = {
    deep: Flags.boolean({ summary: 'look through the whole store for damage and for what nothing holds' }),
  }

  async run() {
    const { flags } = await this.parse(Doctor)
    const { profile, session, signal, output } = this
    const looking = lookAtAll({ profile, session, clock: systemClock, signal })
    const { checks: first, server, isReady, configPath, config } = await this.waitFor('looking', looking)
    const { local, problems, warnings } = config
    // Afterwards, as it keeps this process from hearing answers in time.
    const store = flags.deep && local ? await this.store(local, server) : undefined
    const checks = [...first, ...(store?.checks ?? [])]
    const failures = checks.filter(({ state }) => state === 'failed').length
    if (output.json)
      output.value({
        ok: failures === 0,
        node: process.version,
        dataDir: profile.dataDir,
        server: server ? toldOf(server, isReady) : null,
        config: { path: configPath, problems, warnings },
        ...(store?.examined && { store: store.examined }),
        checks,
      })
    else showChecks(output, checks)
    if (failures === 0) return this.sound(checks, flags.deep)
    // The object says all that is wrong.
    if (output.json) process.exitCode = exit.failed
    else throw new PartlyFailed(`${counted(failures, 'problem')} found`)
  }

  /** What is found in the store; a store that cannot be read is a finding. */
  private async store(
    local: LocalConfig,
    server?: Announcement,
  ): Promise<{ examined?: Examined; checks: Check[] }> {
    const name = 'store'
    try {
      const examined = await this.waitFor('looking through the store', examine(this.profile, local))
      const found = storeFound(examined, this.profile.dataDir, server)
      return { examined, checks: found.map(finding => ({ name, ...finding })) }
    } catch (error) {
      return { checks: [{ name, ...faultFound(error) }] }
    }
  }

  private sound(checks: readonly Check[], isDeep: boolean): void {
    if (this.output.json) return
    const doubts = checks.filter(({ state }) => state === 'warning').length
    this.output.note(doubts === 0 ? '  ✓ nothing wrong' : `  ✓ nothing failed, ${counted(doubts, 'warning')}`)
    if (!isDeep) this.output.note('  wb doctor --deep    looks through the store, too')
  }
}

function toldOf({ url, pid, startedAt }: Announcement, ready: boolean) {
  return { url, pid, startedAt, ready }
}
