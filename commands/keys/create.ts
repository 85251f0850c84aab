import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../../src/cli/command/command.ts'
import { UsageError } from '../../src/cli/errors.ts'
import { findKeysWithLabel } from '../../src/cli/find/key.ts'
import { deliverToken, tokenNotes } from '../../src/cli/keys/deliver-token.ts'
import { tokenFlags } from '../../src/cli/keys/token-flags.ts'
import { tokenTarget } from '../../src/cli/keys/token-target.ts'
import { parseFutureTime } from '../../src/cli/terminal/duration.ts'
import { plainLine } from '../../src/cli/terminal/terminal-text.ts'
import { apiKeys } from '../../src/contract/keys.ts'
import { roles, scopes } from '../../src/contract/scopes.ts'

export default class KeysCreate extends WbCommand {
  static override summary = 'create an API key and print its token once'
  static override examples = [
    'wb keys create ci --role viewer --expires 90d',
    'wb keys create loader --scope write:ingest --write loader.key',
  ]
  static override args = {
    label: Args.string({ required: true, description: 'label that describes what the key is for' }),
  }
  static override flags = {
    role: Flags.option({
      options: roles,
      summary: 'role of the key [--scope read --scope write]',
      exclusive: ['scope'],
    })(),
    scope: Flags.option({
      options: scopes,
      multiple: true,
      summary: 'scope to grant instead of a role; can be repeated',
      helpValue: 'SCOPE',
    })(),
    expires: Flags.string({ summary: 'when the key expires: 90d, 2030-01-31 [never]', helpValue: 'WHEN' }),
    principal: Flags.string({
      summary: 'ID of the principal that the key acts as',
      helpValue: 'ID',
    }),
    ...tokenFlags,
  }

  async run() {
    const { args, flags } = await this.parse(KeysCreate)
    if (args.label.trim() === '') throw new UsageError('LABEL is empty', ['wb keys create ci --role viewer'])
    const expiresAt = flags.expires && parseFutureTime('--expires', flags.expires, this.io.clock.now())
    const target = tokenTarget(flags, this.io)
    const { workspaceId, name } = await this.workspaceOrDefault()
    const authMethods = await this.session.authMethods()
    const { role, scope, principal } = flags
    const others = await findKeysWithLabel(this.client, {
      workspaceId,
      label: args.label,
      nowMs: this.io.clock.now(),
    })
    const body = { label: args.label, role, scopes: scope, expiresAt, principalId: principal }
    const created = await this.client.call(apiKeys.create, { params: { workspaceId }, body })
    await deliverToken(target, this.output, created)
    const context = {
      workspace: name,
      target,
      url: this.profile.url,
      authMethods,
      nowMs: this.io.clock.now(),
    }
    for (const line of tokenNotes(created.key, context)) this.output.note(line)
    if (others.length > 0)
      this.output.note(
        `  ! another active key is named ${plainLine(args.label)}: ${others.map(({ prefix }) => prefix).join(', ')}`,
      )
  }
}
