import { anAgent } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { existing } from '../../src/cli/command/existing.ts'
import { yesFlag } from '../../src/cli/command/flags.ts'
import { findAgent } from '../../src/cli/find/agent.ts'
import { counted } from '../../src/cli/terminal/output.ts'
import { countItems } from '../../src/cli/terminal/take.ts'
import { agents } from '../../src/contract/agents.ts'
import { conversations } from '../../src/contract/conversations.ts'

export default class AgentsDelete extends WbCommand {
  static override summary = 'delete an agent with its conversations'
  static override examples = ['wb agents delete Maven', 'wb agents delete Maven --yes']
  static override args = { agent: existing(anAgent, 'name or id') }
  static override flags = { yes: yesFlag }

  async run() {
    const { args, flags } = await this.parse(AgentsDelete)
    const { workspaceId, agentId, name } = await this.waitFor(
      'looking',
      findAgent(this.resolving, args.agent),
    )
    const params = { workspaceId, agentId }
    const items = this.client.items(conversations.list, { params })
    const held = counted(await this.waitFor('counting conversations', countItems(items)), 'conversation')
    const what = `agent ${name} with ${held}`
    await this.confirmDeletion(what, name, flags.yes)
    await this.client.call(agents.delete, { params })
    this.output.deleted(agentId, `deleted ${what}`)
  }
}
