import { limitFlag, WbCommand } from '../../../src/cli/command.ts'
import { limits } from '../../../src/contract/limits.ts'
import { mcpServers } from '../../../src/contract/mcp-servers.ts'

export default class McpServersList extends WbCommand {
  static override summary = 'list the MCP servers whose tools agents may call'
  static override examples = ['wb mcp servers list', 'wb mcp servers list --workspace demo --json']
  static override flags = { limit: limitFlag }

  async run() {
    const { flags } = await this.parse(McpServersList)
    const { workspaceId, name } = await this.workspace()
    const request = { params: { workspaceId }, query: { limit: limits.pageMax } }
    const { rows, total } = await this.take(this.client.items(mcpServers.list, request), flags.limit)
    this.output.list(rows, {
      columns: {
        id: { of: row => row.mcpServerId, piped: true },
        name: { of: row => row.label },
        url: { of: row => row.url, as: 'free' },
        tools: { of: row => row.allowedTools?.length ?? 'all' },
        enabled: { of: row => (row.enabled ? 'yes' : 'no') },
      },
      empty: [`no MCP servers in workspace ${name}; register one:`, '  wb mcp servers add NAME URL'],
      total,
    })
  }
}
