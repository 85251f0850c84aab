import { WbCommand } from '../../src/cli/command/command.ts'
import { limitFlag } from '../../src/cli/command/flags.ts'
import { lookUpName } from '../../src/cli/fields/tool-name.ts'
import { lookUpLlmServiceNames } from '../../src/cli/find/names.ts'
import { agents } from '../../src/contract/agents.ts'

export default class AgentsList extends WbCommand {
  static override summary = 'list agents'
  static override examples = ['wb agents list', 'wb agents list --workspace demo --json']
  static override flags = { limit: limitFlag }

  async run() {
    const { flags } = await this.parse(AgentsList)
    const { workspaceId, name } = await this.workspace()
    const request = { params: { workspaceId } }
    const { rows, total } = await this.takeRows(this.client.items(agents.list, request), flags.limit)
    const llmNames = this.output.json ? {} : await lookUpLlmServiceNames(this.client, workspaceId, rows)
    this.output.list(rows, {
      columns: {
        id: { value: row => row.agentId, pipeOnly: true },
        name: { value: row => row.name },
        description: { value: row => row.description, format: 'flexible' },
        'knowledge bases': { value: row => row.knowledgeBaseIds.length || 'all' },
        'LLM service': { value: ({ llmServiceId: id }) => id && (lookUpName(llmNames, id) ?? id) },
        updated: { value: row => row.updatedAt, format: 'time' },
      },
      empty: [`no agents in workspace ${name}; create one:`, '  wb agents create --template bobby'],
      total,
    })
  }
}
