import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { principalExists } from '../../../src/cli/access/principals.ts'
import { WbCommand } from '../../../src/cli/command/command.ts'
import { exit } from '../../../src/cli/command/exit.ts'
import { CommandFailed } from '../../../src/cli/errors.ts'
import { plainLine } from '../../../src/cli/terminal/terminal-text.ts'
import { policy } from '../../../src/contract/policy.ts'

export default class AccessPolicyPreview extends WbCommand {
  static override summary = 'check a policy and show the filter it compiles to'
  static override examples = [
    "wb access policy preview 'team = $principal.team' --as alice",
    `wb access policy preview "current_principal_id() = ANY(visible_to) OR '*' = ANY(visible_to)"`,
  ]
  static override args = {
    dsl: Args.string({ required: true, description: 'policy expression' }),
  }
  static override flags = {
    as: Flags.string({ summary: 'ID of the principal to evaluate the policy for', helpValue: 'PRINCIPAL' }),
  }

  async run() {
    const { args, flags } = await this.parse(AccessPolicyPreview)
    const { workspaceId } = await this.workspace()
    const body = { dsl: args.dsl, principalId: flags.as }
    const preview = await this.client.call(policy.preview, { params: { workspaceId }, body })
    if (flags.as !== undefined && !(await principalExists(this.client, workspaceId, flags.as)))
      this.output.note(
        `  there is no principal ${plainLine(flags.as)} in this workspace, so it has no attributes`,
      )
    if (this.output.json) {
      this.output.value(preview)
      if (!preview.ok) this.exitCode = exit.failed
      return
    }
    if (preview.compiledFilter) this.output.value(preview.compiledFilter)
    if (preview.ok) return
    const [issue] = preview.issues
    const hint = issue?.hint ?? preview.parseHint
    const hints = hint === undefined ? [] : [hint]
    throw new CommandFailed(issue?.message ?? preview.parseError ?? 'the policy cannot be enforced', hints)
  }
}
