import { WbCommand } from '../../src/cli/command/command.ts'
import { exit } from '../../src/cli/command/exit.ts'
import { untrustedConfigNotes } from '../../src/cli/connection/resolve-runtime.ts'
import { validateConfig } from '../../src/cli/doctor/validate-config.ts'
import { CommandFailed } from '../../src/cli/errors.ts'
import { locateConfig } from '../../src/cli/local.ts'
import { formatCounted } from '../../src/cli/terminal/output.ts'

export default class ConfigValidate extends WbCommand {
  static override summary = 'check the configuration and list its errors'
  static override examples = ['wb config validate', 'wb config validate --config ./workbase.yaml']

  async run() {
    await this.parse(ConfigValidate)
    this.requireTrustedFolder()
    const location = await locateConfig(this.profile)
    const { problems, warnings } = await validateConfig(this.profile, this.io)
    for (const warning of warnings) this.output.note(`  ! ${warning}`)
    if (this.output.json) {
      this.output.value({ path: location.path, valid: problems.length === 0, problems })
      // The object already lists all problems.
      if (problems.length > 0) this.exitCode = exit.failed
      return
    }
    for (const { key, message } of problems) this.output.result(`${key || '(file)'}\t${message}`)
    for (const line of untrustedConfigNotes(location)) this.output.note(line)
    const name = location.path ?? 'the defaults'
    if (problems.length > 0) throw new CommandFailed(`${name}: ${formatCounted(problems.length, 'problem')}`)
    const result = warnings.length > 0 ? `valid, ${formatCounted(warnings.length, 'warning')}` : 'no problems'
    this.output.note(`  ✓ ${name}: ${result}`)
  }
}
