import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../../../src/cli/command/command.ts'
import { limits } from '../../../src/contract/limits.ts'
import { policy } from '../../../src/contract/policy.ts'

export default class AccessPolicyAudit extends WbCommand {
  static override summary = 'list policy decisions, newest first'
  static override description = 'The list is empty in this version, because decisions are not recorded yet.'
  static override examples = [
    'wb access policy audit',
    'wb access policy audit --principal alice --limit 20 --json',
  ]
  static override flags = {
    principal: Flags.string({ summary: 'show only decisions for this principal', helpValue: 'ID' }),
    kb: Flags.string({ char: 'k', summary: 'show only decisions for this knowledge base (name or ID)' }),
    day: Flags.string({ summary: 'show only decisions from this day (UTC): 2030-01-31', helpValue: 'DAY' }),
    limit: Flags.integer({
      min: 1,
      max: limits.policyAuditMax,
      summary: 'maximum number of decisions',
      default: limits.policyAuditDefault,
    }),
  }

  async run() {
    const { flags } = await this.parse(AccessPolicyAudit)
    const { workspaceId, name } = await this.workspace()
    const base = flags.kb === undefined ? undefined : await this.knowledgeBase(flags.kb)
    const query = {
      principalId: flags.principal,
      knowledgeBaseId: base?.knowledgeBaseId,
      auditDay: flags.day,
      limit: flags.limit,
    }
    const { items } = await this.client.call(policy.audit, { params: { workspaceId }, query })
    this.output.list(items, {
      columns: {
        when: { value: row => row.ts, format: 'time' },
        principal: { value: row => row.principalId },
        action: { value: row => row.action },
        decision: { value: row => row.decision, tone: row => (row.decision === 'deny' ? 'bad' : undefined) },
        reason: { value: row => row.reason },
        resource: { value: row => row.resourceId, format: 'flexible' },
        'knowledge base': { value: row => row.knowledgeBaseId, pipeOnly: true },
        filter: { value: row => row.compiledFilterJson, format: 'flexible' },
      },
      empty: [`no policy decisions in workspace ${name} yet`],
    })
  }
}
