import { auditFlags, auditQuery } from '../../src/cli/access/audit-flags.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { limitFlag } from '../../src/cli/command/flags.ts'
import { auditColumns } from '../../src/cli/fields/audit.ts'
import { audit } from '../../src/contract/audit.ts'

export default class AuditList extends WbCommand {
  static override summary = 'list audit records, newest first'
  static override examples = ['wb audit list --since 1h', 'wb audit list --action auth.api_denied --json']
  static override flags = { ...auditFlags, limit: limitFlag }

  async run() {
    const { flags } = await this.parse(AuditList)
    const query = { ...auditQuery(flags, this.io.clock) }
    const items = flags.all
      ? this.client.items(audit.listAll, { query })
      : this.client.items(audit.list, { params: await this.params(), query })
    const { rows, total } = await this.takeRows(items, flags.limit)
    this.output.list(rows, {
      columns: auditColumns(flags.all),
      empty: [flags.since || flags.action ? 'no matching records' : 'no records yet'],
      total,
    })
  }

  private async params() {
    const { workspaceId } = await this.workspace()
    return { workspaceId }
  }
}
