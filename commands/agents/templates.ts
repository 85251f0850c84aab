import { WbCommand } from '../../src/cli/command/command.ts'
import { agentTemplates } from '../../src/contract/agents.ts'

export default class AgentsTemplates extends WbCommand {
  static override summary = 'list agent templates'
  static override examples = ['wb agents templates', 'wb agents templates --json | jq length']

  async run() {
    await this.parse(AgentsTemplates)
    const { items } = await this.client.call(agentTemplates.list, {})
    this.output.list(items, {
      columns: {
        id: { value: row => row.templateId },
        name: { value: row => row.name },
        description: { value: row => row.description, format: 'flexible' },
      },
      empty: ['this runtime has no templates'],
    })
  }
}
