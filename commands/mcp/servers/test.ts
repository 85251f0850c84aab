import * as Args from '@oclif/core/args'
import { WbCommand } from '../../../src/cli/command/command.ts'
import { exit } from '../../../src/cli/command/exit.ts'
import { findMcpServer } from '../../../src/cli/find/mcp-server.ts'
import { findPendingReviews, pendingReviewLines } from '../../../src/cli/mcp/pending-reviews.ts'
import { serverError } from '../../../src/cli/mcp/server-error.ts'
import { mcpServers } from '../../../src/contract/mcp-servers.ts'

export default class McpServersTest extends WbCommand {
  static override summary = 'connect to an MCP server and list its tools'
  static override examples = ['wb mcp servers test tools', 'wb mcp servers test tools --json | jq .latencyMs']
  static override args = { server: Args.string({ description: 'name or ID [the only server]' }) }

  async run() {
    const { args } = await this.parse(McpServersTest)
    const server = await this.waitFor('loading', findMcpServer(this.resolveContext, args.server))
    const { workspaceId, mcpServerId, label, allowedTools } = server
    const params = { workspaceId, mcpServerId }
    const testRequest = this.client.call(mcpServers.testConnection, { params })
    const result = await this.waitFor(`connecting to ${label}`, testRequest)
    if (this.output.json) {
      this.output.value(result)
      if (!result.ok) this.exitCode = exit.failed
      return
    }
    if (result.error) throw serverError(label, result.error)
    const pendingReviews = await findPendingReviews(this.client, [server], this.signal)
    const mayCall = (name: string) =>
      (allowedTools?.includes(name) ?? true) &&
      !pendingReviews.some(({ tools }) => tools.some(tool => tool.name === name))
    this.output.list(
      result.tools.map(name => ({ name })),
      {
        columns: {
          tool: { value: row => row.name },
          'agents may call it': { value: row => (mayCall(row.name) ? 'yes' : 'no') },
        },
        empty: [`MCP server ${label} has no tools`],
      },
    )
    for (const line of pendingReviews.flatMap(pendingReviewLines)) this.output.note(line)
  }
}
