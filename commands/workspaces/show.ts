import * as Args from '@oclif/core/args'
import { WbCommand } from '../../src/cli/command/command.ts'
import { workspaceFields } from '../../src/cli/fields/resources.ts'

export default class WorkspacesShow extends WbCommand {
  static override summary = 'show a workspace'
  static override examples = ['wb workspaces show', 'wb workspaces show demo --json']
  static override args = { name: Args.string({ description: 'name or ID [the default workspace]' }) }

  async run() {
    const { args } = await this.parse(WorkspacesShow)
    const workspace = await this.workspace(args.name)
    this.output.fields(workspace, workspaceFields(workspace))
  }
}
