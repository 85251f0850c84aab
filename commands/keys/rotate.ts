import * as Flags from '@oclif/core/flags'
import { unrevokedKeyChoices } from '../../src/cli/command/choices.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { existingArg } from '../../src/cli/command/existing-arg.ts'
import { findUnrevokedKey } from '../../src/cli/find/key.ts'
import { deliverToken, tokenNotes } from '../../src/cli/keys/deliver-token.ts'
import { tokenFlags } from '../../src/cli/keys/token-flags.ts'
import { tokenTarget } from '../../src/cli/keys/token-target.ts'
import { formatAgo, formatLifetime, parseDurationSeconds } from '../../src/cli/terminal/duration.ts'
import { type ApiKey, apiKeys } from '../../src/contract/keys.ts'
import { limits } from '../../src/contract/limits.ts'

export default class KeysRotate extends WbCommand {
  static override summary = 'rotate an API key'
  static override examples = ['wb keys rotate ci', 'wb keys rotate deploy --grace 0 --write deploy.key']
  static override args = {
    key: existingArg(unrevokedKeyChoices, 'label, prefix or ID'),
  }
  static override flags = {
    grace: Flags.string({
      summary: 'how long the old token keeps working; 0 revokes it now [24h]',
      helpValue: 'DURATION',
    }),
    ...tokenFlags,
  }

  async run() {
    const { args, flags } = await this.parse(KeysRotate)
    const graceSeconds =
      flags.grace === undefined
        ? undefined
        : parseDurationSeconds('--grace', flags.grace, limits.keyGraceSeconds)
    const target = tokenTarget(flags, this.io)
    const workspace = await this.workspace()
    const lookupOptions = { commandName: this.commandName, nowMs: this.io.clock.now() }
    const { workspaceId, keyId } = await findUnrevokedKey(
      this.resolveContext,
      workspace,
      args.key,
      lookupOptions,
    )
    const authMethods = await this.session.authMethods()
    const rotation = await this.client.call(apiKeys.rotate, {
      params: { workspaceId, keyId },
      body: { graceSeconds },
    })
    await deliverToken(target, this.output, rotation)
    const nowMs = this.io.clock.now()
    const context = { workspace: workspace.name, target, url: this.profile.url, authMethods, nowMs }
    for (const line of tokenNotes(rotation.key, context)) this.output.note(line)
    this.output.note(`    old key  ${rotation.previous.prefix} ${describeEnd(rotation.previous, nowMs)}`)
  }
}

/** Describes when the old token stops working. */
function describeEnd(
  { revokedAt, expiresAt }: Pick<ApiKey, 'revokedAt' | 'expiresAt'>,
  nowMs: number,
): string {
  if (revokedAt !== null) return 'is revoked'
  const hasEnded = expiresAt !== null && Date.parse(expiresAt) <= nowMs
  return hasEnded
    ? `ended ${formatAgo(Date.parse(expiresAt), nowMs)}`
    : `works ${formatLifetime(expiresAt, nowMs)}`
}
