import { workspaceChoices } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { existingArg } from '../../src/cli/command/existing-arg.ts'
import { setDefaultWorkspace } from '../../src/cli/settings/change-settings.ts'

export default class WorkspacesUse extends WbCommand {
  static override summary = 'set the default workspace'
  static override examples = [
    'wb workspaces use demo',
    'wb workspaces use handbooks --url https://wb.example',
  ]
  static override args = { name: existingArg(workspaceChoices, 'name or ID') }

  async run() {
    const { args } = await this.parse(WorkspacesUse)
    const workspace = await this.workspace(args.name)
    await setDefaultWorkspace(this.profile, workspace.workspaceId)
    if (this.output.json) this.output.value(workspace)
    else
      this.output.note(
        `  ✓ ${workspace.name} is the default workspace of ${this.profile.url ?? 'this machine'}`,
      )
  }
}
