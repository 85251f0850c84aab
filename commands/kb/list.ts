import { WbCommand } from '../../src/cli/command/command.ts'
import { limitFlag } from '../../src/cli/command/flags.ts'
import { formatByteSize } from '../../src/cli/terminal/byte-size.ts'
import { kb } from '../../src/contract/knowledge.ts'

export default class KbList extends WbCommand {
  static override summary = 'list knowledge bases'
  static override examples = ['wb kb list', 'wb kb list --workspace demo --json']
  static override flags = { limit: limitFlag }

  async run() {
    const { flags } = await this.parse(KbList)
    const { workspaceId, name } = await this.workspace()
    const items = this.client.items(kb.list, { params: { workspaceId } })
    const { rows, total } = await this.takeRows(items, flags.limit)
    const showsStatus = !this.output.interactive || rows.some(({ status }) => status !== 'active')
    this.output.list(rows, {
      columns: {
        id: { value: row => row.knowledgeBaseId, pipeOnly: true },
        name: { value: row => row.name },
        ...(this.output.interactive && {
          documents: { value: row => row.size?.documents, format: 'count' },
          size: { value: row => row.size && formatByteSize(row.size.bytes), format: 'count' },
        }),
        description: { value: row => row.description, format: 'flexible' },
        ...(showsStatus && { status: { value: row => row.status } }),
        updated: { value: row => row.updatedAt, format: 'time' },
      },
      empty: [`no knowledge bases in workspace ${name} yet; create one:`, '  wb kb create handbook'],
      total,
    })
  }
}
