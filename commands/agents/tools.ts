import { WbCommand } from '../../src/cli/command.ts'
import { agents } from '../../src/contract/agents.ts'

export default class AgentsTools extends WbCommand {
  static override summary = 'list the tools that agents can be given'
  static override examples = ['wb agents tools', 'wb agents tools --json | jq length']

  async run() {
    await this.parse(AgentsTools)
    const { workspaceId } = await this.workspace()
    const asked = this.client.call(agents.tools, { params: { workspaceId } })
    const { items } = await this.waitFor('asking tool servers', asked)
    this.output.list(items, {
      columns: {
        id: { of: row => row.id },
        description: { of: row => row.description, as: 'free' },
        source: { of: row => row.source },
        server: { of: row => row.serverLabel },
      },
      empty: ['this runtime has no tools'],
    })
  }
}
