import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../../src/cli/command/command.ts'
import { parseKeyValues } from '../../src/cli/command/flags.ts'
import { requiresNoCredential } from '../../src/cli/connection/auth-methods.ts'
import { workspaces } from '../../src/contract/workspaces.ts'

export default class WorkspacesUpdate extends WbCommand {
  static override summary = 'rename or reconfigure a workspace'
  static override examples = [
    'wb workspaces update demo --name handbooks',
    'wb workspaces update demo --rlac',
  ]
  static override args = { name: Args.string({ description: 'name or ID [the default workspace]' }) }
  static override flags = {
    name: Flags.string({ summary: 'new name' }),
    endpoint: Flags.string({ summary: 'address of the database, or a secret reference (env:NAME)' }),
    keyspace: Flags.string({ summary: 'database keyspace' }),
    credential: Flags.string({
      multiple: true,
      summary:
        'secret reference for a database credential, such as token=env:DB_TOKEN; replaces all credentials; can be repeated',
      helpValue: 'NAME=REF',
    }),
    rlac: Flags.boolean({ allowNo: true, summary: 'turn row-level access on or off' }),
  }

  async run() {
    const { args, flags } = await this.parse(WorkspacesUpdate)
    const { workspaceId } = await this.workspace(args.name)
    const body = {
      name: flags.name,
      url: flags.endpoint,
      keyspace: flags.keyspace,
      credentials: flags.credential && parseKeyValues(flags.credential, '--credential'),
      rlacEnabled: flags.rlac,
    }
    this.requireChange(body)
    const changed = await this.client.call(workspaces.update, { params: { workspaceId }, body })
    this.output.reportSaved(changed, workspaceId, `updated workspace ${changed.name}`)
    if (flags.rlac) await this.warnWithoutAuthentication()
  }

  private async warnWithoutAuthentication() {
    const authMethods = await this.session.authMethods()
    if (authMethods && requiresNoCredential(authMethods))
      this.output.note(
        '  ! without authentication, requests have no principal, and cannot read or change documents; set auth.mode, or add --as-operator',
      )
  }
}
