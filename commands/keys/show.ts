import { keyChoices } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { existingArg } from '../../src/cli/command/existing-arg.ts'
import { keyFields } from '../../src/cli/fields/key.ts'
import { findKey } from '../../src/cli/find/key.ts'

export default class KeysShow extends WbCommand {
  static override summary = 'show an API key and its permissions'
  static override examples = ['wb keys show ci', 'wb keys show ci --json']
  static override args = {
    key: existingArg(keyChoices, 'label, prefix or ID'),
  }

  async run() {
    const { args } = await this.parse(KeysShow)
    const nowMs = this.io.clock.now()
    const workspace = await this.workspace()
    const key = await findKey(this.resolveContext, workspace, args.key, {
      commandName: this.commandName,
      nowMs,
    })
    this.output.fields(key, keyFields(key, nowMs))
  }
}
