import * as Flags from '@oclif/core/flags'
import { findAnyDocument } from '../../src/cli/access/find-any-document.ts'
import { printExplanation } from '../../src/cli/access/print-explanation.ts'
import { readPolicy } from '../../src/cli/access/read-policy.ts'
import { atFlag, parseAt } from '../../src/cli/access/tool-flags.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { kbFlag } from '../../src/cli/find/document.ts'
import { accessTools } from '../../src/contract/access-tools.ts'

export default class AccessExplain extends WbCommand {
  static override summary = 'explain why a principal sees a document, or not'
  static override description =
    'Prints the conditions of the policy that decide, with the values that they compare.'
  static override examples = [
    'wb access explain --principal alice --document plan.md',
    'wb access explain --principal alice --document plan.md --at 7d',
    'wb access explain --principal alice --document plan.md --policy new.policy',
  ]
  static override flags = {
    principal: Flags.string({ required: true, summary: 'ID of the principal', helpValue: 'ID' }),
    document: Flags.string({
      required: true,
      summary: 'ID, file name, source ID or title of the document',
      helpValue: 'NAME',
    }),
    kb: kbFlag,
    policy: Flags.string({
      summary: 'file with a policy to use instead of the current one',
      helpValue: 'FILE',
    }),
    at: atFlag,
  }

  async run() {
    const { flags } = await this.parse(AccessExplain)
    const at = parseAt(flags.at, this.io.clock)
    const policyDsl = flags.policy === undefined ? undefined : await readPolicy(this.io.cwd, flags.policy)
    const { base, documentId } = await this.waitFor(
      'loading',
      findAnyDocument(this.resolveContext, flags.document, flags.kb),
    )
    const { workspaceId, knowledgeBaseId } = base
    const body = { principalId: flags.principal, knowledgeBaseId, documentId, policyDsl, at }
    const explanation = await this.client.call(accessTools.explain, { params: { workspaceId }, body })
    printExplanation(this.output, explanation, base)
  }
}
