import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../../../src/cli/command/command.ts'
import { withoutDefaults } from '../../../src/cli/command/without-defaults.ts'
import { findMcpServer } from '../../../src/cli/find/mcp-server.ts'
import { authFieldsOf, mcpServerFlags } from '../../../src/cli/mcp/server-flags.ts'
import { mcpServers } from '../../../src/contract/mcp-servers.ts'

export default class McpServersUpdate extends WbCommand {
  static override summary = 'change or disable an MCP server'
  static override examples = [
    'wb mcp servers update tools --tool search',
    'wb mcp servers update tools --all-tools --credential env:TOOLS_KEY',
    'wb mcp servers update tools --no-enabled',
  ]
  static override args = { server: Args.string({ description: 'name or ID [the only server]' }) }
  static override flags = {
    name: Flags.string({ summary: 'new name' }),
    address: Flags.string({ summary: 'new server URL', helpValue: 'URL' }),
    ...withoutDefaults(mcpServerFlags),
    'no-credential': Flags.boolean({ summary: 'stop sending a credential', exclusive: ['credential'] }),
    'no-oauth-client': Flags.boolean({
      summary: 'remove the OAuth client, and register a new one at the next sign-in',
      exclusive: ['oauth-client-id', 'oauth-client-secret'],
    }),
    'all-tools': Flags.boolean({
      summary: 'allow agents to use all tools of the server',
      exclusive: ['tool'],
    }),
    enabled: Flags.boolean({ summary: 'enable or disable the server', allowNo: true }),
  }

  async run() {
    const { args, flags } = await this.parse(McpServersUpdate)
    const { name, address, credential, tool, enabled } = flags
    const body = {
      label: name,
      url: address,
      credentialRef: flags['no-credential'] ? null : credential,
      ...authFieldsOf(flags),
      ...(flags['no-oauth-client'] && { oauthClientId: null, oauthClientSecretRef: null }),
      allowedTools: flags['all-tools'] ? null : tool,
      enabled,
    }
    this.requireChange(body)
    const { workspaceId, mcpServerId } = await this.waitFor(
      'loading',
      findMcpServer(this.resolveContext, args.server),
    )
    const changed = await this.client.call(mcpServers.update, { params: { workspaceId, mcpServerId }, body })
    this.output.reportSaved(changed, mcpServerId, `updated MCP server ${changed.label}`)
  }
}
