import { WbCommand } from '../../src/cli/command/command.ts'
import { limitFlag } from '../../src/cli/command/flags.ts'
import { kb } from '../../src/contract/knowledge.ts'

export default class KbList extends WbCommand {
  static override summary = 'list knowledge bases'
  static override examples = ['wb kb list', 'wb kb list --workspace demo --json']
  static override flags = { limit: limitFlag }

  async run() {
    const { flags } = await this.parse(KbList)
    const { workspaceId, name } = await this.workspace()
    const items = this.client.items(kb.list, { params: { workspaceId } })
    const { rows, total } = await this.take(items, flags.limit)
    this.output.list(rows, {
      columns: {
        id: { of: row => row.knowledgeBaseId, piped: true },
        name: { of: row => row.name },
        description: { of: row => row.description, as: 'free' },
        status: { of: row => row.status },
        updated: { of: row => row.updatedAt, as: 'time' },
      },
      empty: [`no knowledge bases in workspace ${name} yet; make the first one:`, '  wb kb create handbook'],
      total,
    })
  }
}
