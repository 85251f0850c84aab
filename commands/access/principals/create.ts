import * as Args from '@oclif/core/args'
import { principalBody, principalFlags } from '../../../src/cli/access/principals.ts'
import { WbCommand } from '../../../src/cli/command/command.ts'
import { principals } from '../../../src/contract/principals.ts'

export default class AccessPrincipalsCreate extends WbCommand {
  static override summary = 'add a principal to a workspace'
  static override examples = [
    'wb access principals create alice --role editor',
    'wb access principals create bob@example.com --label Bob --attribute team=blue',
  ]
  static override args = {
    id: Args.string({
      required: true,
      description: 'principal ID, such as the subject of an access token',
    }),
  }
  static override flags = principalFlags

  async run() {
    const { args, flags } = await this.parse(AccessPrincipalsCreate)
    const { workspaceId, name } = await this.workspace()
    const body = { principalId: args.id, ...principalBody(flags) }
    const created = await this.client.call(principals.create, { params: { workspaceId }, body })
    this.output.reportSaved(
      created,
      created.principalId,
      `added principal ${created.principalId} (${created.role}) to workspace ${name}`,
    )
  }
}
