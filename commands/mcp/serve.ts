import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../../src/cli/command/command.ts'
import { type McpPermission, mcpPermissions } from '../../src/cli/mcp/mcp-permissions.ts'
import { serveMcp } from '../../src/cli/mcp/serve.ts'
import { pathOf, type RawCall } from '../../src/client/client.ts'
import { mcp } from '../../src/contract/mcp.ts'

export default class McpServe extends WbCommand {
  static override summary = 'serve a workspace to an MCP client on stdin and stdout'
  static override description =
    'For MCP clients that start servers themselves. `wb mcp install` prints their configuration. `wb serve` does not need to be running. By default, only read-only tools are available; `--allow` adds others, within the permissions of your key.'
  static override examples = ['wb mcp serve -w demo', 'wb mcp serve --allow write:ingest,write:kb']
  static override flags = {
    allow: Flags.option({
      options: mcpPermissions,
      multiple: true,
      delimiter: ',',
      summary: 'also allow tools that ingest documents, change knowledge bases, or chat with agents',
    })(),
  }

  async run() {
    const { flags } = await this.parse(McpServe)
    const { workspaceId } = await this.workspace()
    if (this.io.stdin.isTTY)
      this.output.note('  waiting for an MCP client on stdin; to set one up: wb mcp install --help')
    const bridgeOptions = {
      path: pathOf(mcp.send, { params: { workspaceId } }),
      sendRequest: async (call: RawCall) => {
        await this.session.rediscover()
        return this.client.raw(call)
      },
      permissions: new Set<McpPermission>(flags.allow),
      signal: this.signal,
    }
    await serveMcp(bridgeOptions, { input: this.io.stdin, output: this.io.stdout })
  }
}
