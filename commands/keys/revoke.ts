import * as Args from '@oclif/core/args'
import { systemClock } from '../../src/base/clock.ts'
import { WbCommand, yesFlag } from '../../src/cli/command.ts'
import { findKey } from '../../src/cli/find-key.ts'
import { ago } from '../../src/cli/output.ts'
import { plainLine } from '../../src/cli/terminal-text.ts'
import { apiKeys } from '../../src/contract/keys.ts'

export default class KeysRevoke extends WbCommand {
  static override summary = 'revoke a key: its next request is refused'
  static override examples = ['wb keys revoke ci', 'wb keys revoke ci --yes']
  static override args = {
    key: Args.string({ required: true, description: 'label, prefix or id' }),
  }
  static override flags = { yes: yesFlag }

  async run() {
    const { args, flags } = await this.parse(KeysRevoke)
    const nowMs = systemClock.now()
    const workspace = await this.workspace()
    const key = await findKey(this.resolving, workspace, args.key, { spoken: this.spoken, nowMs })
    const { workspaceId, keyId, prefix, lastUsedAt } = key
    const label = plainLine(key.label) || prefix
    const use = lastUsedAt === null ? 'never used' : `last used ${ago(Date.parse(lastUsedAt), nowMs)}`
    const what = `key ${label} (${prefix}, ${use}) of workspace ${plainLine(workspace.name)}`
    await this.confirm({ act: `revokes ${what}`, undone: 'nothing was revoked' }, label, flags.yes)
    await this.client.call(apiKeys.revoke, { params: { workspaceId, keyId } })
    if (this.output.json) this.output.value({ revoked: keyId })
    else this.output.note(`  ✓ revoked ${what}`)
  }
}
