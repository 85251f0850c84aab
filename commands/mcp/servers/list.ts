import { WbCommand } from '../../../src/cli/command/command.ts'
import { limitFlag } from '../../../src/cli/command/flags.ts'
import { type DeclaredServer, listDeclaredServers } from '../../../src/cli/mcp/declared-servers.ts'
import { findPendingReviews, pendingReviewLines } from '../../../src/cli/mcp/pending-reviews.ts'
import { type McpServer, mcpServers } from '../../../src/contract/mcp-servers.ts'

export default class McpServersList extends WbCommand {
  static override summary = 'list MCP servers'
  static override description =
    'The list includes stdio servers from the configuration of this machine. With --json, it contains registered servers only.'
  static override examples = ['wb mcp servers list', 'wb mcp servers list --workspace demo --json']
  static override flags = { limit: limitFlag }

  async run() {
    const { flags } = await this.parse(McpServersList)
    const { workspaceId, name } = await this.workspace()
    const request = { params: { workspaceId } }
    const registeredServers = this.client.items(mcpServers.list, request)
    const declaredServers = this.output.json ? [] : await listDeclaredServers(workspaceId, this.session)
    const { rows, total } = await this.takeRows(concatenate(registeredServers, declaredServers), flags.limit)
    this.output.list(rows, {
      columns: {
        id: { value: row => row.mcpServerId, pipeOnly: true },
        name: { value: row => row.label },
        url: { value: row => row.url, format: 'flexible' },
        tools: { value: row => row.allowedTools?.length ?? 'all' },
        enabled: { value: row => (row.enabled ? 'yes' : 'no') },
      },
      empty: [`no MCP servers in workspace ${name}; add one:`, '  wb mcp servers add NAME URL'],
      total,
    })
    if (this.output.json) return
    const pendingReviews = await this.waitFor(
      'querying the servers',
      findPendingReviews(this.client, rows.filter(isRegistered), this.signal),
    )
    for (const line of pendingReviews.flatMap(pendingReviewLines)) this.output.note(line)
  }
}

async function* concatenate(
  registeredServers: AsyncIterable<McpServer>,
  declaredServers: readonly DeclaredServer[],
) {
  yield* registeredServers
  yield* declaredServers
}

function isRegistered(row: McpServer | DeclaredServer): row is McpServer {
  return 'workspaceId' in row
}
