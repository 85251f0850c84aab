import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../../src/cli/command/command.ts'
import { limitFlag } from '../../src/cli/command/flags.ts'
import { decisionColumns } from '../../src/cli/fields/decision.ts'
import { audit } from '../../src/contract/audit.ts'
import { policyDecisions } from '../../src/contract/policy.ts'

export default class AuditDecisions extends WbCommand {
  static override summary = 'list decisions of row-level access, newest first'
  static override examples = [
    'wb audit decisions --decision deny',
    'wb audit decisions --principal alice --kb papers --day 2030-01-31 --json',
  ]
  static override flags = {
    principal: Flags.string({ summary: 'show only decisions for this principal', helpValue: 'ID' }),
    kb: Flags.string({ char: 'k', summary: 'show only decisions for this knowledge base (name or ID)' }),
    day: Flags.string({ summary: 'show only decisions from this day (UTC): 2030-01-31', helpValue: 'DAY' }),
    decision: Flags.option({
      options: policyDecisions,
      summary: 'show only these decisions',
      helpValue: 'DECISION',
    })(),
    limit: limitFlag,
  }

  async run() {
    const { flags } = await this.parse(AuditDecisions)
    const { workspaceId, name } = await this.workspace()
    const base = flags.kb === undefined ? undefined : await this.knowledgeBase(flags.kb)
    const query = {
      principalId: flags.principal,
      knowledgeBaseId: base?.knowledgeBaseId,
      auditDay: flags.day,
      decision: flags.decision,
    }
    const decisions = this.client.items(audit.decisions, { params: { workspaceId }, query })
    const { rows, total } = await this.takeRows(decisions, flags.limit)
    const isFiltered = Object.values(query).some(value => value !== undefined)
    this.output.list(rows, {
      columns: decisionColumns,
      empty: [isFiltered ? 'no matching decisions' : `no decisions in workspace ${name} yet`],
      total,
    })
  }
}
