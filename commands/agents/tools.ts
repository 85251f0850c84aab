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
    const requests = Promise.all([
      this.client.call(agents.tools, { params: { workspaceId } }),
      this.output.json ? [] : this.findPendingReviews(workspaceId),
    ])
    const [{ items }, pendingReviews] = await this.waitFor('querying MCP servers', requests)
    this.output.list(items, {
      columns: {
        id: { value: row => row.id, pipeOnly: true },
        name: { value: toolFlagName },
        description: { value: row => row.description, format: 'flexible' },
        source: { value: row => row.source },
        server: { value: row => row.serverLabel, pipeOnly: true },
      },
      empty: ['this runtime has no tools'],
    })
    for (const line of pendingReviews.flatMap(pendingReviewLines)) this.output.note(line)
  }

  private async findPendingReviews(workspaceId: string) {
    return findPendingReviews(this.client, await listMcpServers(this.client, workspaceId), this.signal)
  }
}
