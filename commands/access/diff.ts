import * as Flags from '@oclif/core/flags'
import { readPolicy } from '../../src/cli/access/read-policy.ts'
import { readToolPages } from '../../src/cli/access/read-tool-pages.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { accessTools, type PolicyChange } from '../../src/contract/access-tools.ts'
import { limits } from '../../src/contract/limits.ts'

const filesShown = 3

export default class AccessDiff extends WbCommand {
  static override summary = 'show who would gain or lose documents by a policy'
  static override description =
    'Compares the policy in FILE with the current one of the knowledge base. Nothing is saved. Without --policy, compares with the built-in policy.'
  static override examples = [
    'wb access diff --policy new.policy --kb handbook',
    'wb access diff --policy new.policy --json | jq ".items[] | select(.gains.total > 0)"',
  ]
  static override flags = {
    policy: Flags.string({ summary: 'file with the new policy', helpValue: 'FILE' }),
    kb: Flags.string({ char: 'k', summary: 'knowledge base name or ID [the only one]' }),
  }

  async run() {
    const { flags } = await this.parse(AccessDiff)
    const policyDsl = flags.policy === undefined ? null : await readPolicy(this.io.cwd, flags.policy)
    const { workspaceId, knowledgeBaseId, name } = await this.knowledgeBase(flags.kb)
    const documentsListed = this.output.json ? limits.policyDiffDocumentsMax : filesShown
    const request = { params: { workspaceId }, body: { knowledgeBaseId, policyDsl, documentsListed } }
    const { items, facts } = await this.waitFor(
      'comparing',
      readToolPages(cursor =>
        this.client.call(accessTools.diff, { ...request, query: { limit: limits.pageMax, cursor } }),
      ),
    )
    if (this.output.json) {
      this.output.value({ items, ...facts })
      return
    }
    const { everyoneElse, rlacEnabled } = facts
    const others: PolicyChange = { principalId: 'everyone else', label: null, role: null, ...everyoneElse }
    const rows = [...items, others].filter(({ gains, loses }) => gains.total + loses.total > 0)
    this.output.list(rows, {
      columns: {
        principal: { value: row => row.principalId },
        gains: { value: row => row.gains.total, format: 'count', tone: warnIfAny },
        loses: { value: row => row.loses.total, format: 'count' },
        documents: { value: formatChanges, format: 'flexible' },
      },
      empty: [`no principal would gain or lose documents of knowledge base ${name}`],
    })
    if (!rlacEnabled)
      this.output.note('  row-level access is off in this workspace, so no policy has an effect yet')
  }
}

/** Access that a principal gains is what to look at first. */
function warnIfAny({ gains }: PolicyChange) {
  return gains.total > 0 ? ('warning' as const) : undefined
}

function formatChanges({ gains, loses }: PolicyChange): string {
  return [
    ...gains.documents.map(one => `+${nameOf(one)}`),
    ...loses.documents.map(one => `-${nameOf(one)}`),
  ].join(', ')
}

function nameOf({ sourceFilename, documentId }: PolicyChange['gains']['documents'][number]): string {
  return sourceFilename ?? documentId
}
