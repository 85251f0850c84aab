import { WbCommand } from '../../src/cli/command/command.ts'
import { listMcpServers } from '../../src/cli/find/mcp-server.ts'
import { toolFlagName } from '../../src/cli/find/tool.ts'
import { findPendingReviews, pendingReviewLines } from '../../src/cli/mcp/pending-reviews.ts'
import { agents } from '../../src/contract/agents.ts'

export default class AgentsTools extends WbCommand {
  static override summary = 'list the tools that agents can use'
  static override examples = ['wb agents tools', 'wb agents tools --json | jq length']

  async run() {
    await this.parse(AgentsTools)
    const { workspaceId } = await this.workspace()
    const asked = Promise.all([
      this.client.call(agents.tools, { params: { workspaceId } }),
      this.output.json ? [] : this.waiting(workspaceId),
    ])
    const [{ items }, waiting] = await this.waitFor('querying MCP servers', asked)
    this.output.list(items, {
      columns: {
        id: { of: row => row.id, piped: true },
        name: { of: toolFlagName },
        description: { of: row => row.description, as: 'free' },
        source: { of: row => row.source },
        server: { of: row => row.serverLabel, piped: true },
      },
      empty: ['this runtime has no tools'],
    })
    for (const line of waiting.flatMap(pendingReviewLines)) this.output.note(line)
  }

  private async waiting(workspaceId: string) {
    return findPendingReviews(this.client, await listMcpServers(this.client, workspaceId), this.signal)
  }
}
