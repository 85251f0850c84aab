import { findPrincipal, principalBody, principalFlags } from '../../../src/cli/access/principals.ts'
import { principalChoices } from '../../../src/cli/command/choices.ts'
import { WbCommand } from '../../../src/cli/command/command.ts'
import { existingArg } from '../../../src/cli/command/existing-arg.ts'
import { principals } from '../../../src/contract/principals.ts'

export default class AccessPrincipalsUpdate extends WbCommand {
  static override summary = 'change the label, role or attributes of a principal'
  static override description =
    'Changes only what you set. An empty --label removes the label. The attributes that you pass replace all existing ones.'
  static override examples = [
    'wb access principals update alice --role viewer',
    'wb access principals update alice --attribute team=red --attribute site=north',
  ]
  static override args = { principal: existingArg(principalChoices, 'ID or label') }
  static override flags = principalFlags

  async run() {
    const { args, flags } = await this.parse(AccessPrincipalsUpdate)
    const body = principalBody(flags)
    this.requireChange(body)
    const { workspaceId, principalId } = await findPrincipal(
      this.resolveContext,
      await this.workspace(),
      args.principal,
    )
    const params = { workspaceId, principalId }
    const changed = await this.client.call(principals.update, { params, body })
    this.output.reportSaved(changed, principalId, `updated principal ${principalId}`)
  }
}
