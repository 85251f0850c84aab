import * as Args from '@oclif/core/args'
import { WbCommand } from '../../../src/cli/command/command.ts'
import { findMcpServer } from '../../../src/cli/find/mcp-server.ts'
import { waitingAt, waitingWords } from '../../../src/cli/mcp/waiting.ts'

export default class McpServersShow extends WbCommand {
  static override summary = 'show an MCP server'
  static override examples = ['wb mcp servers show tools', 'wb mcp servers show tools --json | jq .url']
  static override args = { server: Args.string({ description: 'name or id; the only one when left out' }) }

  async run() {
    const { args } = await this.parse(McpServersShow)
    const server = await this.waitFor('looking', findMcpServer(this.resolving, args.server))
    const asked = this.output.json ? [] : waitingAt(this.client, [server], this.signal)
    const [waiting] = await this.waitFor(`asking ${server.label}`, Promise.resolve(asked))
    this.output.fields(server, {
      id: server.mcpServerId,
      name: server.label,
      url: server.url,
      credential: server.credentialRef,
      tools: server.allowedTools?.join(', ') ?? 'all',
      review: waiting && waitingWords(waiting),
      enabled: server.enabled ? 'yes' : 'no',
      created: { time: server.createdAt },
      updated: { time: server.updatedAt },
    })
  }
}
