import { WbCommand } from '../../../src/cli/command/command.ts'
import { limitFlag } from '../../../src/cli/command/flags.ts'
import { type Declared, declaredFor } from '../../../src/cli/mcp/declared.ts'
import { waitingAt, waitingLines } from '../../../src/cli/mcp/waiting.ts'
import { type McpServer, mcpServers } from '../../../src/contract/mcp-servers.ts'

export default class McpServersList extends WbCommand {
  static override summary = 'list the MCP servers whose tools agents may call'
  static override description =
    'Servers that the configuration of this machine declares as commands are listed, too; --json has those that are registered.'
  static override examples = ['wb mcp servers list', 'wb mcp servers list --workspace demo --json']
  static override flags = { limit: limitFlag }

  async run() {
    const { flags } = await this.parse(McpServersList)
    const { workspaceId, name } = await this.workspace()
    const request = { params: { workspaceId } }
    const registered = this.client.items(mcpServers.list, request)
    const declared = this.output.json ? [] : await declaredFor(workspaceId, this.session)
    const { rows, total } = await this.take(oneAfterTheOther(registered, declared), flags.limit)
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
    if (this.output.json) return
    const waiting = await this.waitFor(
      'asking them',
      waitingAt(this.client, rows.filter(isRegistered), this.signal),
    )
    for (const line of waiting.flatMap(waitingLines)) this.output.note(line)
  }
}

async function* oneAfterTheOther(registered: AsyncIterable<McpServer>, declared: readonly Declared[]) {
  yield* registered
  yield* declared
}

function isRegistered(row: McpServer | Declared): row is McpServer {
  return 'workspaceId' in row
}
