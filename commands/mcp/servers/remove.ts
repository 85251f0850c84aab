import { mcpServerChoices } from '../../../src/cli/command/choices.ts'
import { WbCommand } from '../../../src/cli/command/command.ts'
import { existingArg } from '../../../src/cli/command/existing-arg.ts'
import { yesFlag } from '../../../src/cli/command/flags.ts'
import { findMcpServer } from '../../../src/cli/find/mcp-server.ts'
import { mcpServers } from '../../../src/contract/mcp-servers.ts'

export default class McpServersRemove extends WbCommand {
  static override summary = 'remove an MCP server'
  static override examples = ['wb mcp servers remove tools', 'wb mcp servers remove tools --yes']
  static override args = { server: existingArg(mcpServerChoices, 'name or ID') }
  static override flags = { yes: yesFlag }

  async run() {
    const { args, flags } = await this.parse(McpServersRemove)
    const { workspaceId, mcpServerId, label, url } = await this.waitFor(
      'loading',
      findMcpServer(this.resolveContext, args.server),
    )
    const target = `MCP server ${label} at ${url}`
    await this.confirmDeletion(target, label, flags.yes)
    await this.client.call(mcpServers.delete, { params: { workspaceId, mcpServerId } })
    this.output.reportDeleted(mcpServerId, `removed ${target}`)
  }
}
