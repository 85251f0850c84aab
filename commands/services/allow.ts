import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../../src/cli/command/command.ts'
import { releaseSecret } from '../../src/cli/services/release-secret.ts'

export default class ServicesAllow extends WbCommand {
  static override summary = 'allow a secret to be sent to a host'
  static override description =
    'Services and MCP servers can then use the secret; with --workspace, only those in that workspace. Requires --as-operator, or a login with access to all workspaces and the scope manage.'
  static override examples = [
    'wb services allow env:VLLM_KEY --host models.example.com:8443 --as-operator',
    'wb services allow env:TEAM_KEY --host models.example.com --workspace demo --as-operator',
  ]
  static override args = {
    ref: Args.string({ required: true, description: 'secret reference: env:NAME or file:/path' }),
  }
  static override flags = {
    host: Flags.string({ summary: 'host that may receive the secret, with its port unless that is 443' }),
  }

  async run() {
    const { args, flags } = await this.parse(ServicesAllow)
    const host = await this.flagOrPrompt('--host', flags.host, 'Host to send it to')
    const workspaceId = this.profile.workspace ? (await this.workspace()).workspaceId : null
    const created = await releaseSecret(this.client, { ref: args.ref, host }, workspaceId)
    if (created)
      this.output.reportSaved(created, created.releaseId, `released ${created.ref} for ${created.host}`)
    else this.output.note(`  ${args.ref} is already released for ${host}`)
  }
}
