import { attributesOf } from '../../../src/cli/access/principals.ts'
import { WbCommand } from '../../../src/cli/command/command.ts'
import { limitFlag } from '../../../src/cli/command/flags.ts'
import { principals } from '../../../src/contract/principals.ts'

export default class AccessPrincipalsList extends WbCommand {
  static override summary = 'list whom a workspace knows'
  static override examples = [
    'wb access principals list',
    'wb access principals list --json | jq -r ".[].principalId"',
  ]
  static override flags = { limit: limitFlag }

  async run() {
    const { flags } = await this.parse(AccessPrincipalsList)
    const { workspaceId, name } = await this.workspace()
    const call = { params: { workspaceId } }
    const { rows, total } = await this.take(this.client.items(principals.list, call), flags.limit)
    this.output.list(rows, {
      columns: {
        id: { of: row => row.principalId },
        label: { of: row => row.label, as: 'free' },
        role: { of: row => row.role },
        attributes: { of: attributesOf, as: 'free' },
        updated: { of: row => row.updatedAt, as: 'time' },
      },
      empty: [
        `workspace ${name} knows nobody yet; make the first one known:`,
        '  wb access principals create alice',
      ],
      total,
    })
  }
}
