import * as Args from '@oclif/core/args'
import { WbCommand } from '../../../src/cli/command/command.ts'
import { exit } from '../../../src/cli/command/exit.ts'
import { yesFlag } from '../../../src/cli/command/flags.ts'
import { findMcpServer } from '../../../src/cli/find/mcp-server.ts'
import { reviewLines, toolsAwaitingReview } from '../../../src/cli/mcp/review.ts'
import { serverError } from '../../../src/cli/mcp/server-error.ts'
import { plainLine } from '../../../src/cli/terminal/terminal-text.ts'
import { type McpServerTool, type McpServerTools, mcpServers } from '../../../src/contract/mcp-servers.ts'

export default class McpServersReview extends WbCommand {
  static override summary = 'accept new or changed tools of an MCP server'
  static override description =
    'Agents cannot use a tool whose description or arguments changed after you accepted it. Outside a terminal, the command lists the tools, and the exit status is 1 if any tool needs a review.'
  static override examples = ['wb mcp servers review tools', 'wb mcp servers review tools --yes']
  static override args = { server: Args.string({ description: 'name or ID [the only server]' }) }
  static override flags = { yes: yesFlag }

  async run() {
    const { args, flags } = await this.parse(McpServersReview)
    const server = await this.waitFor('loading', findMcpServer(this.resolveContext, args.server))
    const { workspaceId, mcpServerId, label } = server
    const params = { workspaceId, mcpServerId }
    const toolsRequest = this.client.call(mcpServers.tools, { params })
    const current = await this.waitFor(`connecting to ${label}`, toolsRequest)
    if (current.error) throw serverError(label, current.error)
    const accept = await this.#confirmTools(toolsAwaitingReview(current), flags.yes)
    const reviewed =
      accept.length === 0 ? current : await this.client.call(mcpServers.review, { params, body: { accept } })
    this.#show(reviewed, label)
    if (!this.canAsk && toolsAwaitingReview(reviewed).length > 0) this.exitCode = exit.failed
  }

  async #confirmTools(pendingTools: readonly McpServerTool[], yes: boolean) {
    const accepted: { name: string; hash: string }[] = []
    for (const tool of pendingTools) {
      if (!yes) for (const line of reviewLines(tool)) this.output.warn(line)
      const { name, hash } = tool
      if (yes || (await this.askYesNo(`Accept ${plainLine(name)}?`, false))) accepted.push({ name, hash })
    }
    return accepted
  }

  #show(reviewed: McpServerTools, label: string) {
    if (this.output.json) return this.output.value(reviewed)
    this.output.list(reviewed.items, {
      columns: {
        tool: { value: row => row.name },
        state: { value: row => row.state },
        'agents may call it': { value: row => (row.allowed && row.state === 'accepted' ? 'yes' : 'no') },
      },
      empty: [`MCP server ${label} has no tools`],
    })
  }
}
