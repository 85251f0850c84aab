import { WbCommand } from '../../src/cli/command/command.ts'
import { limitFlag } from '../../src/cli/command/flags.ts'
import { llmServiceNames } from '../../src/cli/find/names.ts'
import { nameIn } from '../../src/cli/shown/tool.ts'
import { agents } from '../../src/contract/agents.ts'

export default class AgentsList extends WbCommand {
  static override summary = 'list agents'
  static override examples = ['wb agents list', 'wb agents list --workspace demo --json']
  static override flags = { limit: limitFlag }

  async run() {
    const { flags } = await this.parse(AgentsList)
    const { workspaceId, name } = await this.workspace()
    const request = { params: { workspaceId } }
    const { rows, total } = await this.take(this.client.items(agents.list, request), flags.limit)
    const answering = this.output.json ? {} : await llmServiceNames(this.client, workspaceId, rows)
    this.output.list(rows, {
      columns: {
        id: { of: row => row.agentId, piped: true },
        name: { of: row => row.name },
        description: { of: row => row.description, as: 'free' },
        'knowledge bases': { of: row => row.knowledgeBaseIds.length || 'all' },
        'LLM service': { of: ({ llmServiceId: id }) => id && (nameIn(answering, id) ?? id) },
        updated: { of: row => row.updatedAt, as: 'time' },
      },
      empty: [`no agents in workspace ${name}; make one:`, '  wb agents create --template bobby'],
      total,
    })
  }
}
