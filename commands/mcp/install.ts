import * as Args from '@oclif/core/args'
import * as Flags from '@oclif/core/flags'
import { WbCommand } from '../../src/cli/command/command.ts'
import { yesFlag } from '../../src/cli/command/flags.ts'
import { UsageError } from '../../src/cli/errors.ts'
import {
  type ClientName,
  clientConfiguration,
  clientNames,
  planChange,
  printConfiguration,
  serverEntry,
} from '../../src/cli/mcp/clients.ts'
import {
  credentialInstructions,
  resolveEntryKey,
  undefinedIfCredentialMissing,
} from '../../src/cli/mcp/entry-key.ts'
import { mcpPermissions } from '../../src/cli/mcp/mcp-permissions.ts'
import { writeConfiguration } from '../../src/cli/mcp/write-configuration.ts'

export default class McpInstall extends WbCommand {
  static override summary = 'print or install the configuration for an MCP client'
  static override description =
    '`--write` adds the entry to the configuration file of the client, and keeps other entries. Without `--include-key`, the entry contains no key: `wb mcp serve` uses your login, or WB_API_KEY if the client passes it on. If the runtime requires a key, the output explains how to provide it.'
  static override examples = [
    'wb mcp install',
    'wb mcp install cursor --write --yes',
    'wb mcp install claude-desktop -w demo --allow write:ingest --write --yes',
  ]
  static override args = {
    client: Args.string({ options: clientNames, description: `MCP client: ${clientNames.join(', ')}` }),
  }
  static override flags = {
    allow: Flags.option({
      options: mcpPermissions,
      multiple: true,
      delimiter: ',',
      summary: 'also allow tools that ingest documents, change knowledge bases, or chat with agents',
    })(),
    'include-key': Flags.boolean({ summary: 'include the value of WB_API_KEY in the entry' }),
    write: Flags.boolean({ summary: 'add the entry to the configuration file of the client' }),
    yes: yesFlag,
  }

  async run() {
    const { args, flags } = await this.parse(McpInstall)
    const client = args.client as ClientName | undefined
    if (flags.write && !client)
      throw new UsageError('--write needs the name of a client', [`wb mcp install ${clientNames[0]} --write`])
    const workspace = await undefinedIfCredentialMissing(this.session, this.workspace())
    const name = workspace?.name ?? this.profile.workspace
    const keyRequest = { client, workspaceId: workspace?.workspaceId, includesKey: flags['include-key'] }
    const { requiredCredential, env } = await resolveEntryKey(this.session, keyRequest)
    const entry = { ...serverEntry(this.profile, name, flags.allow ?? [], this.io), ...(env && { env }) }
    const servers = { [name === undefined ? 'workbase' : `workbase-${name}`]: entry }
    const change = client && planChange(client, servers, this.io.env)
    if (change && flags.write)
      await writeConfiguration(change, {
        output: this.output,
        skipsConfirmation: flags.yes,
        confirm: this.canAsk ? question => this.askYesNo(question) : undefined,
        commandName: this.commandName,
      })
    else {
      printConfiguration(this.output, clientConfiguration(client, servers))
      if (change) this.output.note(`  add it to ${change.path}, or use --write`)
    }
    for (const line of credentialInstructions(requiredCredential, client, this.profile))
      this.output.note(line)
  }
}
