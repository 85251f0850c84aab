import { auditFlags } from '../../src/cli/access/audit-flags.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { auditColumns } from '../../src/cli/fields/audit.ts'
import { followEvents } from '../../src/cli/jobs/follow-events.ts'
import { plainLine } from '../../src/cli/terminal/terminal-text.ts'
import { audit } from '../../src/contract/audit.ts'
import type { AuditAction, AuditRecord } from '../../src/contract/audit-record.ts'

export default class AuditFollow extends WbCommand {
  static override summary = 'show audit records as they are written'
  static override examples = ['wb audit follow', 'wb audit follow --action auth.api_denied --json']
  static override flags = { action: auditFlags.action, all: auditFlags.all }

  async run() {
    const { flags } = await this.parse(AuditFollow)
    const { action } = flags
    const columns = auditColumns(flags.all)
    const { scope, ...stream } = flags.all
      ? await this.openRuntimeStream(action)
      : await this.openWorkspaceStream(action)
    const events = followEvents({
      ...stream,
      signal: this.signal,
      onLost: waitMs => this.output.note(`  the connection was lost; reconnecting in ${waitMs / 1_000} s`),
      onReconnected: () => this.output.note('  reconnected'),
    })
    this.output.note(`  following ${scope}; Ctrl-C to stop`)
    for await (const { data } of events) this.output.row(data as AuditRecord, columns)
  }

  /** Reads the newest record, to check permissions, and opens the stream of the records after it. */
  private async openRuntimeStream(action?: AuditAction) {
    const { client, signal } = this
    const { items } = await client.call(audit.listAll, { query: { action, limit: 1 } })
    const open = (lastEventId?: string) =>
      client.events(audit.listAll, { query: { action } }, { lastEventId, signal })
    return { scope: 'the whole runtime', after: items[0]?.auditId, open }
  }

  private async openWorkspaceStream(action?: AuditAction) {
    const { client, signal } = this
    const { workspaceId, name } = await this.workspace()
    const params = { workspaceId }
    const { items } = await client.call(audit.list, { params, query: { action, limit: 1 } })
    const open = (lastEventId?: string) =>
      client.events(audit.list, { params, query: { action } }, { lastEventId, signal })
    return { scope: `workspace ${plainLine(name)}`, after: items[0]?.auditId, open }
  }
}
