import { WbCommand } from '../../src/cli/command.ts'
import { PartlyFailed } from '../../src/cli/faults.ts'
import { locateConfig, readConfig, secretProblems } from '../../src/cli/local.ts'
import { counted } from '../../src/cli/output.ts'
import { strangers } from '../../src/cli/resolve-runtime.ts'
import { WbError } from '../../src/contract/errors.ts'

interface Problem {
  key: string
  message: string
}

export default class ConfigValidate extends WbCommand {
  static override summary = 'check the configuration and list all that is wrong with it'
  static override examples = ['wb config validate', 'wb config validate --config ./workbase.yaml']

  async run() {
    await this.parse(ConfigValidate)
    const found = await locateConfig(this.profile)
    const problems = await this.problems()
    if (this.output.json) this.output.value({ path: found.path, valid: problems.length === 0, problems })
    else for (const { key, message } of problems) this.output.result(`${key || '(file)'}\t${message}`)
    for (const line of strangers(found)) this.output.note(line)
    const name = found.path ?? 'the defaults'
    if (problems.length > 0) throw new PartlyFailed(`${name}: ${counted(problems.length, 'problem')}`)
    this.output.note(`  ✓ ${name}: nothing wrong`)
  }

  private async problems(): Promise<Problem[]> {
    try {
      const local = await readConfig(this.profile)
      for (const warning of local.warnings) this.output.note(`  ! ${warning}`)
      return [...local.notBuilt, ...(await secretProblems(local))]
    } catch (error) {
      if (!(error instanceof WbError) || error.code !== 'validation_error') throw error
      const { problems } = error.facts
      return Array.isArray(problems) ? problems : [{ key: '', message: error.message }]
    }
  }
}
