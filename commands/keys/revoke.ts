import { aKeyInUse } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { existing } from '../../src/cli/command/existing.ts'
import { yesFlag } from '../../src/cli/command/flags.ts'
import { findKeyInUse } from '../../src/cli/find/key.ts'
import { isReplaced, keyState } from '../../src/cli/shown/key.ts'
import { ago, lasting } from '../../src/cli/terminal/moment.ts'
import { plainLine } from '../../src/cli/terminal/terminal-text.ts'
import { everything } from '../../src/client/client.ts'
import { type ApiKey, apiKeys } from '../../src/contract/keys.ts'

export default class KeysRevoke extends WbCommand {
  static override summary = 'revoke a key: its next request is refused'
  static override examples = ['wb keys revoke ci', 'wb keys revoke ci --yes']
  static override args = {
    key: existing(aKeyInUse, 'label, prefix or id'),
  }
  static override flags = { yes: yesFlag }

  async run() {
    const { args, flags } = await this.parse(KeysRevoke)
    const nowMs = this.io.clock.now()
    const workspace = await this.workspace()
    const key = await findKeyInUse(this.resolving, workspace, args.key, { spoken: this.spoken, nowMs })
    const { workspaceId, keyId, prefix, lastUsedAt } = key
    const label = plainLine(key.label) || prefix
    const use = lastUsedAt === null ? 'never used' : `last used ${ago(Date.parse(lastUsedAt), nowMs)}`
    const of = `of workspace ${plainLine(workspace.name)}`
    await this.confirm(
      { act: `revokes key ${label} (${prefix}, ${use}) ${of}`, undone: 'nothing was revoked' },
      label,
      flags.yes,
    )
    await this.client.call(apiKeys.revoke, { params: { workspaceId, keyId } })
    if (this.output.json) this.output.value({ revoked: keyId })
    else this.output.note(`  ✓ revoked key ${label} (${prefix}) ${of}`)
    await this.tellOfPredecessors(key)
  }

  /** What a rotation left working is another token of the same caller. */
  private async tellOfPredecessors(key: ApiKey) {
    const call = { params: { workspaceId: key.workspaceId } }
    const nowMs = this.io.clock.now()
    for (const older of await everything(this.client.items(apiKeys.list, call)))
      if (keyState(older, nowMs) === 'active' && isReplaced(older, [key]))
        this.output.warn(
          `  ! ${older.prefix}, which it replaced, works ${lasting(older.expiresAt, nowMs)}\n    wb keys revoke ${older.prefix}`,
        )
  }
}
