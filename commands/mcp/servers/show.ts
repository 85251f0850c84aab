import * as Args from '@oclif/core/args'
import { shellWord } from '../../../src/base/shell-word.ts'
import { WbCommand } from '../../../src/cli/command/command.ts'
import { findMcpServer } from '../../../src/cli/find/mcp-server.ts'
import { findPendingReviews, pendingReviewSummary } from '../../../src/cli/mcp/pending-reviews.ts'
import { plainLine } from '../../../src/cli/terminal/terminal-text.ts'
import { type McpServer, mcpServers } from '../../../src/contract/mcp-servers.ts'

export default class McpServersShow extends WbCommand {
  static override summary = 'show an MCP server'
  static override examples = ['wb mcp servers show tools', 'wb mcp servers show tools --json | jq .url']
  static override args = { server: Args.string({ description: 'name or ID [the only server]' }) }

  async run() {
    const { args } = await this.parse(McpServersShow)
    const server = await this.waitFor('loading', findMcpServer(this.resolveContext, args.server))
    const reviewsRequest = this.output.json ? [] : findPendingReviews(this.client, [server], this.signal)
    const [pendingReview] = await this.waitFor(
      `connecting to ${server.label}`,
      Promise.resolve(reviewsRequest),
    )
    const signIn =
      !this.output.json && server.authType === 'oauth2' ? await this.#describeSignIn(server) : undefined
    this.output.fields(server, {
      id: server.mcpServerId,
      name: server.label,
      url: server.url,
      credential: server.credentialRef,
      tools: server.allowedTools?.join(', ') ?? 'all',
      review: pendingReview && pendingReviewSummary(pendingReview),
      'sign-in': signIn,
      enabled: server.enabled ? 'yes' : 'no',
      created: { time: server.createdAt },
      updated: { time: server.updatedAt },
    })
  }

  async #describeSignIn({ workspaceId, mcpServerId, label }: McpServer): Promise<string> {
    const { signedIn } = await this.client.call(mcpServers.showSignIn, {
      params: { workspaceId, mcpServerId },
    })
    return signedIn ? 'signed in' : `not signed in: wb mcp servers login ${shellWord(plainLine(label))}`
  }
}
