import { formatAttributes } from '../../../src/cli/access/principals.ts'
import { WbCommand } from '../../../src/cli/command/command.ts'
import { limitFlag } from '../../../src/cli/command/flags.ts'
import { principals } from '../../../src/contract/principals.ts'

export default class AccessPrincipalsList extends WbCommand {
  static override summary = 'list the principals of a workspace'
  static override examples = [
    'wb access principals list',
    'wb access principals list --json | jq -r ".[].principalId"',
  ]
  static override flags = { limit: limitFlag }

  async run() {
    const { flags } = await this.parse(AccessPrincipalsList)
    const { workspaceId, name } = await this.workspace()
    const call = { params: { workspaceId } }
    const { rows, total } = await this.takeRows(this.client.items(principals.list, call), flags.limit)
    this.output.list(rows, {
      columns: {
        id: { value: row => row.principalId },
        label: { value: row => row.label, format: 'flexible' },
        role: { value: row => row.role },
        attributes: { value: formatAttributes, format: 'flexible' },
        updated: { value: row => row.updatedAt, format: 'time' },
      },
      empty: [`no principals in workspace ${name} yet; add one:`, '  wb access principals create alice'],
      total,
    })
  }
}
