import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { shellWord } from '../../src/base/shell-word.ts'
import { WbCommand } from '../../src/cli/command/command.ts'
import { parseKeyValues } from '../../src/cli/command/flags.ts'
import { workspaceKinds, workspaces } from '../../src/contract/workspaces.ts'

export default class WorkspacesCreate extends WbCommand {
  static override summary = 'create a workspace with its default services'
  static override examples = ['wb workspaces create demo', 'wb workspaces create scratch --kind mock']
  static override args = {
    name: Args.string({ required: true, description: 'workspace name, unique in the runtime' }),
  }
  static override flags = {
    kind: Flags.option({
      options: workspaceKinds,
      summary: 'kind of store for documents and vectors',
      default: 'local',
    })(),
    endpoint: Flags.string({ summary: 'address of the database, or a secret reference (env:NAME)' }),
    keyspace: Flags.string({ summary: 'database keyspace' }),
    credential: Flags.string({
      multiple: true,
      summary: 'secret reference for a database credential, such as token=env:DB_TOKEN; can be repeated',
      helpValue: 'NAME=REF',
    }),
    rlac: Flags.boolean({ summary: 'turn on row-level access' }),
  }

  async run() {
    const { args, flags } = await this.parse(WorkspacesCreate)
    const body = {
      name: args.name,
      kind: flags.kind,
      url: flags.endpoint,
      keyspace: flags.keyspace,
      credentials: flags.credential && parseKeyValues(flags.credential, '--credential'),
      rlacEnabled: flags.rlac || undefined,
    }
    const created = await this.client.call(workspaces.create, { body })
    this.output.reportSaved(created, created.workspaceId, `created workspace ${created.name}`)
    this.output.suggest(`wb kb create handbook --workspace ${shellWord(created.name)}`)
  }
}
