import { WbCommand } from '../../src/cli/command/command.ts'
import { untrustedConfigNotes } from '../../src/cli/connection/resolve-runtime.ts'
import { locateConfig } from '../../src/cli/local.ts'

export default class ConfigPath extends WbCommand {
  static override summary = 'print the path of the configuration file in use'
  static override examples = ['wb config path', 'wb config path --config ./workbase.yaml']

  async run() {
    await this.parse(ConfigPath)
    this.requireTrustedFolder()
    const location = await locateConfig(this.profile)
    if (this.output.json) this.output.value({ path: location.path, origin: location.origin })
    else if (location.path) this.output.result(location.path)
    else this.output.note('  no configuration file; all keys have their default values')
    for (const line of untrustedConfigNotes(location)) this.output.note(line)
  }
}
