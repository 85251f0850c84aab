import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../../src/cli/command/command.ts'
import { release } from '../../src/cli/services/release.ts'

export default class ServicesAllow extends WbCommand {
  static override summary = 'let services and tool servers use a secret, for one host'
  static override description =
    'For who owns the data directory (--as-operator), or who signs in for the whole runtime. With --workspace the release is for records of that workspace alone.'
  static override examples = [
    'wb services allow env:VLLM_KEY --host models.example.com:8443 --as-operator',
    'wb services allow env:TEAM_KEY --host models.example.com --workspace demo --as-operator',
  ]
  static override args = {
    ref: Args.string({ required: true, description: 'reference to the secret: env:NAME or file:/path' }),
  }
  static override flags = {
    host: Flags.string({ summary: 'where it may be sent, with its port unless that is 443' }),
  }

  async run() {
    const { args, flags } = await this.parse(ServicesAllow)
    const host = await this.want('--host', flags.host, 'Host that it may be sent to')
    const workspaceId = this.profile.workspace ? (await this.workspace()).workspaceId : null
    const made = await release(this.client, { ref: args.ref, host }, workspaceId)
    if (made) this.output.made(made, made.releaseId, `released ${made.ref} for ${made.host}`)
    else this.output.note(`  ${args.ref} is released for ${host} already`)
  }
}
