import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../../src/cli/command/command.ts'
import { type Allowance, allowances } from '../../src/cli/mcp/allowances.ts'
import { serveMcp } from '../../src/cli/mcp/serve.ts'
import { pathOf, type RawCall } from '../../src/client/client.ts'
import { mcp } from '../../src/contract/mcp.ts'

export default class McpServe extends WbCommand {
  static override summary = 'serve a workspace to an MCP client on stdin and stdout'
  static override description =
    'For clients that start their MCP servers themselves; `wb mcp install` prints their configuration. `wb serve` does not have to run. Only read-only tools are available; `--allow` adds others, within the permissions of your key.'
  static override examples = ['wb mcp serve -w demo', 'wb mcp serve --allow write:ingest,write:kb']
  static override flags = {
    allow: Flags.option({
      options: allowances,
      multiple: true,
      delimiter: ',',
      summary: 'also allow these tools',
    })(),
  }

  async run() {
    const { flags } = await this.parse(McpServe)
    const { workspaceId } = await this.workspace()
    if (this.io.stdin.isTTY)
      this.output.note('  waiting for an MCP client on stdin; to set one up: wb mcp install --help')
    const parts = {
      path: pathOf(mcp.send, { params: { workspaceId } }),
      raw: async (call: RawCall) => {
        await this.session.rediscover()
        return this.client.raw(call)
      },
      allowed: new Set<Allowance>(flags.allow),
      signal: this.signal,
    }
    await serveMcp(parts, { input: this.io.stdin, output: this.io.stdout })
  }
}
