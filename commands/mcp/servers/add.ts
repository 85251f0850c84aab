import * as Args from '@oclif/core/args'
import { shellWord } from '../../../src/base/shell-word.ts'
import { mcpServerChoices } from '../../../src/cli/command/choices.ts'
import { WbCommand } from '../../../src/cli/command/command.ts'
import { authFieldsOf, mcpServerFlags } from '../../../src/cli/mcp/server-flags.ts'
import { offerRelease } from '../../../src/cli/services/offer-release.ts'
import { mcpServers } from '../../../src/contract/mcp-servers.ts'

export default class McpServersAdd extends WbCommand {
  static override summary = 'register an MCP server for agents to use'
  static override description = 'The server must support MCP over Streamable HTTP.'
  static override examples = [
    'wb mcp servers add tools http://127.0.0.1:9000/mcp',
    'wb mcp servers add issues https://mcp.example.com/mcp --credential env:ISSUES_KEY',
    'wb mcp servers add tickets https://tickets.example.com/mcp --auth oauth2',
    'wb mcp servers add wiki http://127.0.0.1:9000/mcp --tool search --tool read',
  ]
  static override args = {
    name: Args.string({ required: true, description: 'server name' }),
    url: Args.string({ required: true, description: 'server URL' }),
  }
  static override flags = mcpServerFlags

  async run() {
    const { args, flags } = await this.parse(McpServersAdd)
    const { workspaceId } = await this.workspaceOrDefault()
    await this.confirmDuplicateName(mcpServerChoices, args.name)
    const body = {
      label: args.name,
      url: args.url,
      credentialRef: flags.credential,
      ...authFieldsOf(flags),
      allowedTools: flags.tool,
    }
    const created = await this.client.call(mcpServers.create, { params: { workspaceId }, body })
    this.output.reportSaved(created, created.mcpServerId, `added MCP server ${created.label}`)
    if (created.credentialRef !== null) {
      const use = { ref: created.credentialRef, host: new URL(created.url).host }
      const confirm = this.askYesNo.bind(this)
      const note = (line: string) => this.output.note(line)
      await offerRelease({ client: this.client, confirm, note }, use, workspaceId)
    }
    const next = created.authType === 'oauth2' ? 'login' : 'test'
    this.output.suggest(`wb mcp servers ${next} ${shellWord(created.label)}`)
  }
}
