import { findPrincipal } from '../../../src/cli/access/principals.ts'
import { principalChoices } from '../../../src/cli/command/choices.ts'
import { WbCommand } from '../../../src/cli/command/command.ts'
import { existingArg } from '../../../src/cli/command/existing-arg.ts'
import { yesFlag } from '../../../src/cli/command/flags.ts'
import { principals } from '../../../src/contract/principals.ts'

export default class AccessPrincipalsDelete extends WbCommand {
  static override summary = 'delete a principal from a workspace'
  static override examples = ['wb access principals delete alice', 'wb access principals delete alice --yes']
  static override args = { principal: existingArg(principalChoices, 'ID or label') }
  static override flags = { yes: yesFlag }

  async run() {
    const { args, flags } = await this.parse(AccessPrincipalsDelete)
    const workspace = await this.workspace()
    const { workspaceId, principalId, role } = await findPrincipal(
      this.resolveContext,
      workspace,
      args.principal,
    )
    const target = `principal ${principalId} (${role}) of workspace ${workspace.name}`
    await this.confirmDeletion(target, principalId, flags.yes)
    await this.client.call(principals.delete, { params: { workspaceId, principalId } })
    this.output.reportDeleted(principalId, `deleted ${target}`)
  }
}
