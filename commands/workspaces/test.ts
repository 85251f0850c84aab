import * as Args from '@oclif/core/args'
import { WbCommand } from '../../src/cli/command/command.ts'
import { exit } from '../../src/cli/command/exit.ts'
import { CommandFailed } from '../../src/cli/errors.ts'
import { workspaces } from '../../src/contract/workspaces.ts'

export default class WorkspacesTest extends WbCommand {
  static override summary = 'test the connection to the store of a workspace'
  static override examples = ['wb workspaces test', 'wb workspaces test demo --json']
  static override args = { name: Args.string({ description: 'name or ID [the default workspace]' }) }

  async run() {
    const { args } = await this.parse(WorkspacesTest)
    const { workspaceId, name } = await this.workspace(args.name)
    const testRequest = this.client.call(workspaces.testConnection, { params: { workspaceId } })
    const { ok, kind, details } = await this.waitFor(`testing ${name}`, testRequest)
    if (this.output.json) {
      this.output.value({ ok, kind, details })
      if (!ok) this.exitCode = exit.failed
      return
    }
    if (!ok) throw new CommandFailed(`workspace ${name}: ${details}`, [`wb workspaces update ${name} --help`])
    this.output.result(details)
  }
}
