import { WbCommand } from '../../src/cli/command/command.ts'
import { untrustedConfigNotes } from '../../src/cli/connection/resolve-runtime.ts'
import { readConfig } from '../../src/cli/local.ts'

export default class ConfigShow extends WbCommand {
  static override summary = 'show configuration values and their sources'
  static override examples = [
    'wb config show',
    'wb config show --json | jq \'.[] | select(.source != "default")\'',
  ]

  async run() {
    await this.parse(ConfigShow)
    this.requireTrustedFolder()
    const { file: location, values, warnings } = await readConfig(this.profile, this.io)
    this.output.list(values, {
      columns: {
        key: { value: row => row.key },
        value: {
          value: row => (typeof row.value === 'string' ? row.value : JSON.stringify(row.value)),
          format: 'flexible',
        },
        from: { value: row => row.source },
      },
      empty: [],
    })
    if (location.path) this.output.note(`  ${location.path}`)
    for (const warning of [...warnings.map(text => `  ! ${text}`), ...untrustedConfigNotes(location)])
      this.output.note(warning)
  }
}
