import * as Args from '@oclif/core/args'
import { WbCommand } from '../../../src/cli/command/command.ts'
import { findMcpServer } from '../../../src/cli/find/mcp-server.ts'
import { plainLine } from '../../../src/cli/terminal/terminal-text.ts'
import { mcpServers } from '../../../src/contract/mcp-servers.ts'

export default class McpServersLogout extends WbCommand {
  static override summary = 'sign out of an MCP server'
  static override examples = ['wb mcp servers logout issues', 'wb mcp servers logout issues --json']
  static override args = { server: Args.string({ description: 'name or ID [the only server]' }) }

  async run() {
    const { args } = await this.parse(McpServersLogout)
    const server = await this.waitFor('loading', findMcpServer(this.resolveContext, args.server))
    const { workspaceId, mcpServerId, label } = server
    await this.client.call(mcpServers.endSignIn, { params: { workspaceId, mcpServerId } })
    this.output.reportDeleted(mcpServerId, `signed out of ${plainLine(label)}`)
  }
}
