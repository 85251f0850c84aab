import { agentChoices } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { existingArg } from '../../src/cli/command/existing-arg.ts'
import { yesFlag } from '../../src/cli/command/flags.ts'
import { findAgent } from '../../src/cli/find/agent.ts'
import { formatCounted } from '../../src/cli/terminal/output.ts'
import { countItems } from '../../src/cli/terminal/take-first.ts'
import { agents } from '../../src/contract/agents.ts'
import { conversations } from '../../src/contract/conversations.ts'

export default class AgentsDelete extends WbCommand {
  static override summary = 'delete an agent and its conversations'
  static override examples = ['wb agents delete Maven', 'wb agents delete Maven --yes']
  static override args = { agent: existingArg(agentChoices, 'name or ID') }
  static override flags = { yes: yesFlag }

  async run() {
    const { args, flags } = await this.parse(AgentsDelete)
    const { workspaceId, agentId, name } = await this.waitFor(
      'loading',
      findAgent(this.resolveContext, args.agent),
    )
    const params = { workspaceId, agentId }
    const items = this.client.items(conversations.list, { params })
    const contents = formatCounted(
      await this.waitFor('counting conversations', countItems(items)),
      'conversation',
    )
    const target = `agent ${name} with ${contents}`
    await this.confirmDeletion(target, name, flags.yes)
    await this.client.call(agents.delete, { params })
    this.output.reportDeleted(agentId, `deleted ${target}`)
  }
}
