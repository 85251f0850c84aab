import { workspaceChoices } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { existingArg } from '../../src/cli/command/existing-arg.ts'
import { yesFlag } from '../../src/cli/command/flags.ts'
import { setDefaultWorkspace } from '../../src/cli/settings/change-settings.ts'
import { defaultWorkspace } from '../../src/cli/settings/profile.ts'
import { formatCounted } from '../../src/cli/terminal/output.ts'
import { countItems } from '../../src/cli/terminal/take-first.ts'
import { agents } from '../../src/contract/agents.ts'
import { kb } from '../../src/contract/knowledge.ts'
import { workspaces } from '../../src/contract/workspaces.ts'

export default class WorkspacesDelete extends WbCommand {
  static override summary = 'delete a workspace and everything in it'
  static override examples = ['wb workspaces delete scratch', 'wb workspaces delete scratch --yes']
  static override args = { name: existingArg(workspaceChoices, 'name or ID') }
  static override flags = { yes: yesFlag }

  async run() {
    const { args, flags } = await this.parse(WorkspacesDelete)
    const { workspaceId, name } = await this.workspace(args.name)
    const params = { workspaceId }
    const baseCount = await countItems(this.client.items(kb.list, { params }))
    const agentCount = await countItems(this.client.items(agents.list, { params }))
    const target = `workspace ${name} with ${formatCounted(baseCount, 'knowledge base')}, ${formatCounted(agentCount, 'agent')}, and all documents, conversations, services and keys`
    await this.confirmDeletion(target, name, flags.yes)
    await this.waitFor(`deleting ${name}`, this.client.call(workspaces.delete, { params }))
    if (defaultWorkspace(this.profile) === workspaceId) await setDefaultWorkspace(this.profile, undefined)
    this.output.reportDeleted(workspaceId, `deleted ${target}`)
  }
}
