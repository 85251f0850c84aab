import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../src/cli/command.ts'
import { checkConfig } from '../src/cli/config-problems.ts'
import { checkLine, faultOf, storeState } from '../src/cli/doctor-shown.ts'
import { exit } from '../src/cli/exit.ts'
import { PartlyFailed } from '../src/cli/faults.ts'
import { type Examined, examine, findLocalServer, type LocalConfig, locateConfig } from '../src/cli/local.ts'
import { counted } from '../src/cli/output.ts'

export default class Doctor extends WbCommand {
  static override summary = 'say whether the configuration and the data of this machine are in order'
  static override examples = ['wb doctor', 'wb doctor --deep', 'wb doctor --deep --json']
  static override flags = {
    deep: Flags.boolean({ summary: 'look through the whole store for damage and for what nothing holds' }),
  }

  async run() {
    const { flags } = await this.parse(Doctor)
    const { dataDir } = this.profile
    const [server, { path }, config] = await Promise.all([
      findLocalServer(dataDir),
      locateConfig(this.profile),
      checkConfig(this.profile),
    ])
    const examined = flags.deep && config.local ? await this.examined(config.local) : undefined
    const found = examined?.checks.filter(({ count }) => count > 0) ?? []
    const fault = server && (await faultOf(server))
    const failures = config.problems.length + found.length + (fault ? 1 : 0)
    const { problems, warnings } = config
    const told = {
      ok: failures === 0,
      node: process.version,
      dataDir,
      server: server
        ? { url: server.url, pid: server.pid, startedAt: server.startedAt, ready: !fault }
        : null,
      config: { path: path ?? null, problems, warnings },
      ...(examined && { store: examined }),
    }
    this.output.fields(told, {
      node: process.version,
      data: dataDir,
      server: server ? `${server.url}, process ${server.pid}` : 'none runs here',
      config: path ?? 'the defaults',
      store: examined && storeState(examined),
    })
    if (this.output.json) {
      // The object says all that is wrong.
      if (failures > 0) process.exitCode = exit.failed
      return
    }
    for (const warning of warnings) this.output.note(`  ! ${warning}`)
    for (const { key, message } of problems) this.output.result(`${key || '(file)'}\t${message}`)
    if (fault) this.output.result(`server\t${fault}`)
    for (const check of found) this.output.result(checkLine(check))
    if (failures > 0) throw new PartlyFailed(`${counted(failures, 'problem')} found`)
    this.output.note(`  ✓ nothing wrong${examined ? `, ${counted(examined.checks.length, 'check')}` : ''}`)
    if (!examined) this.output.note('  wb doctor --deep    looks through the store, too')
  }

  private examined(local: LocalConfig): Promise<Examined> {
    return this.waitFor('looking through the store', examine(this.profile, local))
  }
}
