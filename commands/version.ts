import { hostFacts } from '../src/base/host-facts.ts'
import { packageBuild } from '../src/base/package.ts'
import { WbCommand } from '../src/cli/command/command.ts'
import { formatDate } from '../src/cli/terminal/duration.ts'

export default class Version extends WbCommand {
  static override summary = 'show the version and build of wb'
  static override examples = ['wb version', 'wb version --json']
  protected override readonly usesFolderFiles = false

  async run() {
    await this.parse(Version)
    const { version, commit, buildTime } = packageBuild()!
    const platform = `${hostFacts.platform}-${hostFacts.architecture}`
    const fields = { version, commit, buildTime, node: hostFacts.nodeVersion, platform }
    this.output.fields(fields, { ...fields, buildTime: undefined, built: formatDate(Date.parse(buildTime)) })
  }
}
