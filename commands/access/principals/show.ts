import { findPrincipal, principalFields } from '../../../src/cli/access/principals.ts'
import { principalChoices } from '../../../src/cli/command/choices.ts'
import { WbCommand } from '../../../src/cli/command/command.ts'
import { existingArg } from '../../../src/cli/command/existing-arg.ts'

export default class AccessPrincipalsShow extends WbCommand {
  static override summary = 'show a principal'
  static override examples = ['wb access principals show alice', 'wb access principals show alice --json']
  static override args = { principal: existingArg(principalChoices, 'ID or label') }

  async run() {
    const { args } = await this.parse(AccessPrincipalsShow)
    const principal = await findPrincipal(this.resolveContext, await this.workspace(), args.principal)
    this.output.fields(principal, principalFields(principal))
  }
}
