import { unrevokedKeyChoices } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { existingArg } from '../../src/cli/command/existing-arg.ts'
import { yesFlag } from '../../src/cli/command/flags.ts'
import { isReplaced, keyState } from '../../src/cli/fields/key.ts'
import { findUnrevokedKey } from '../../src/cli/find/key.ts'
import { formatAgo, formatLifetime } from '../../src/cli/terminal/duration.ts'
import { plainLine } from '../../src/cli/terminal/terminal-text.ts'
import { collect } from '../../src/client/client.ts'
import { type ApiKey, apiKeys } from '../../src/contract/keys.ts'

export default class KeysRevoke extends WbCommand {
  static override summary = 'revoke an API key'
  static override examples = ['wb keys revoke ci', 'wb keys revoke ci --yes']
  static override args = {
    key: existingArg(unrevokedKeyChoices, 'label, prefix or ID'),
  }
  static override flags = { yes: yesFlag }

  async run() {
    const { args, flags } = await this.parse(KeysRevoke)
    const nowMs = this.io.clock.now()
    const workspace = await this.workspace()
    const key = await findUnrevokedKey(this.resolveContext, workspace, args.key, {
      commandName: this.commandName,
      nowMs,
    })
    const { workspaceId, keyId, prefix, lastUsedAt } = key
    const label = plainLine(key.label) || prefix
    const use = lastUsedAt === null ? 'never used' : `last used ${formatAgo(Date.parse(lastUsedAt), nowMs)}`
    const workspacePhrase = `of workspace ${plainLine(workspace.name)}`
    await this.confirm(
      {
        effect: `revokes key ${label} (${prefix}, ${use}) ${workspacePhrase}`,
        ifDeclined: 'nothing was revoked',
      },
      label,
      flags.yes,
    )
    await this.client.call(apiKeys.revoke, { params: { workspaceId, keyId } })
    if (this.output.json) this.output.value({ revoked: keyId })
    else this.output.note(`  ✓ revoked key ${label} (${prefix}) ${workspacePhrase}`)
    await this.warnOfPredecessors(key)
  }

  /** Warns about earlier keys that were rotated but still work. */
  private async warnOfPredecessors(key: ApiKey) {
    const call = { params: { workspaceId: key.workspaceId } }
    const nowMs = this.io.clock.now()
    for (const otherKey of await collect(this.client.items(apiKeys.list, call)))
      if (keyState(otherKey, nowMs) === 'active' && isReplaced(otherKey, [key]))
        this.output.warn(
          `  ! ${otherKey.prefix}, which this key replaced, works ${formatLifetime(otherKey.expiresAt, nowMs)}\n    wb keys revoke ${otherKey.prefix}`,
        )
  }
}
