import { readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { hostFacts } from '../../base/host-facts.ts'
import { isObject } from '../../base/is-object.ts'
import { parseJson } from '../../base/parse-json.ts'
import { writePrivateFile } from '../../base/private-file.ts'
import { type Environment, homeFolder } from '../environment.ts'
import { UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { launchCommand } from '../launch-command.ts'
import type { Profile } from '../settings/profile.ts'
import type { Output } from '../terminal/output.ts'
import type { McpPermission } from './mcp-permissions.ts'
import { fieldsOf } from './message.ts'

/** Entry with the command that a client runs. It contains no credential, except with `--include-key`. */
export interface ServerEntry {
  readonly type?: 'stdio'
  readonly command: string
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

/** A value that VS Code prompts for once, and then stores. */
interface PromptedInput {
  readonly type: 'promptString'
  readonly id: string
  readonly description: string
  readonly password: true
}

/** The part of a client's configuration file that declares MCP servers. */
export interface ClientConfiguration {
  readonly mcpServers?: Readonly<Record<string, ServerEntry>>
  readonly servers?: Readonly<Record<string, ServerEntry>>
  readonly inputs?: readonly PromptedInput[]
}

interface McpClient {
  readonly title: string
  /** Field of the configuration that contains the servers by name. */
  readonly field: 'mcpServers' | 'servers'
  readonly path: (home: string) => string
  /** Placeholder that the client replaces with the key; undefined if the client supports none. */
  readonly keyReference?: string
}

const keyInput: PromptedInput = {
  type: 'promptString',
  id: 'workbase-api-key',
  description: 'Workbase API key',
  password: true,
}

/** Returns a placeholder that Cursor and VS Code replace when they start a server. */
function placeholder(source: string): string {
  return `$\{${source}}`
}

const clients = {
  'claude-desktop': {
    title: 'Claude Desktop',
    field: 'mcpServers',
    path: home => join(applicationDataFolder(home), 'Claude', 'claude_desktop_config.json'),
  },
  cursor: {
    title: 'Cursor',
    field: 'mcpServers',
    path: home => join(home, '.cursor', 'mcp.json'),
    keyReference: placeholder('env:WB_API_KEY'),
  },
  vscode: {
    title: 'VS Code',
    field: 'servers',
    path: home => join(applicationDataFolder(home), 'Code', 'User', 'mcp.json'),
    keyReference: placeholder(`input:${keyInput.id}`),
  },
} as const satisfies Record<string, McpClient>

export type ClientName = keyof typeof clients
export const clientNames = Object.keys(clients) as ClientName[]

/** Returns the folder for application settings on this platform. */
function applicationDataFolder(home: string): string {
  if (hostFacts.platform === 'win32') return join(home, 'AppData', 'Roaming')
  if (hostFacts.platform === 'darwin') return join(home, 'Library', 'Application Support')
  return join(home, '.config')
}

/** Returns the display name of a client. */
export function clientTitle(client: ClientName | undefined): string {
  return client ? clients[client].title : 'the client'
}

/** Returns the placeholder that a client replaces with the key; undefined if the client supports none. */
export function keyReferenceOf(client: ClientName | undefined): string | undefined {
  return client && (clients[client] as McpClient).keyReference
}

/** Returns the configuration for a client. For an unknown client, uses the most common format. */
export function clientConfiguration(
  client: ClientName | undefined,
  servers: Readonly<Record<string, ServerEntry>>,
): ClientConfiguration {
  const field = client ? clients[client].field : 'mcpServers'
  if (field === 'mcpServers') return { [field]: servers }
  const typedEntries = Object.entries(servers).map(([name, entry]) => [name, { type: 'stdio', ...entry }])
  const needsInput = Object.values(servers).some(({ env }) => env?.WB_API_KEY === clients.vscode.keyReference)
  return {
    ...(needsInput && { inputs: [keyInput] }),
    [field]: Object.fromEntries(typedEntries) as Record<string, ServerEntry>,
  }
}

/** Prints a configuration in the format of the client's configuration file. */
export function printConfiguration(output: Output, configuration: ClientConfiguration): void {
  if (output.json) output.value(configuration)
  else output.result(JSON.stringify(configuration, null, 2))
}

/**
 * Returns the entry with the command that serves a workspace of the profile's runtime.
 *
 * @param workspace  undefined for the workspace of the API key that `wb mcp serve` uses
 */
export function serverEntry(
  { name, nameSource, url, urlSource, local, dataDir, dataDirSource, config }: Profile,
  workspace: string | undefined,
  permissions: readonly McpPermission[],
  io: Pick<Io, 'env' | 'script'>,
): ServerEntry {
  const args = ['mcp', 'serve', ...(workspace === undefined ? [] : ['-w', workspace])]
  if (permissions.length > 0) args.push('--allow', permissions.join(','))
  if (local) args.push('--local')
  else if (nameSource !== 'wb profiles use' || urlSource === 'profile') args.push('--profile', name)
  if (url !== undefined && urlSource !== 'profile') args.push('--url', url)
  if (url === undefined && dataDirSource !== 'platform') args.push('--data-dir', dataDir)
  const file = config.flag ?? config.variable ?? config.trusted
  if (url === undefined && file !== undefined) args.push('--config', file)
  const launcher = launchCommand(io)
  return { command: launcher.command, args: [...launcher.args, ...args] }
}

/** A planned change to the configuration file of a client. */
export interface ConfigurationChange {
  readonly title: string
  readonly path: string
  /** Description of the change, with the names of the servers that it replaces. */
  readonly description: string
  /** True if the file already contains the change. */
  readonly isDone: boolean
  write(): void
}

/** Plans a change that adds servers. @throws UsageError  when the file is not a JSON object; it is not changed */
export function planChange(
  client: ClientName,
  servers: Readonly<Record<string, ServerEntry>>,
  environment: Environment,
): ConfigurationChange {
  const { title, field, path: configurationPath } = clients[client]
  const { path, content } = readConfiguration(configurationPath(homeFolder(environment)), title)
  const existingEntries = fieldsOf(content[field])
  const { inputs = [], [field]: entries } = clientConfiguration(client, servers)
  const newEntries = fieldsOf(entries)
  const replacedNames = Object.keys(newEntries).filter(
    name =>
      name in existingEntries && JSON.stringify(existingEntries[name]) !== JSON.stringify(newEntries[name]),
  )
  const existingInputs = Array.isArray(content.inputs) ? (content.inputs as unknown[]) : []
  const missingInputs = inputs.filter(({ id }) => !existingInputs.some(input => fieldsOf(input).id === id))
  const newContent = {
    ...content,
    ...(missingInputs.length > 0 && { inputs: [...existingInputs, ...missingInputs] }),
    [field]: { ...existingEntries, ...newEntries },
  }
  return {
    title,
    path,
    description: `change ${path}${replacedNames.length > 0 ? `, replacing the entry ${replacedNames.join(', ')}` : ''}`,
    isDone:
      missingInputs.length === 0 &&
      replacedNames.length === 0 &&
      Object.keys(newEntries).every(name => name in existingEntries),
    write: () => writePrivateFile(path, `${JSON.stringify(newContent, null, 2)}\n`),
  }
}

/**
 * Reads a configuration file, and returns its path with symbolic links resolved, so that the caller writes to the
 * target of a link and keeps the link. A missing file counts as empty.
 */
function readConfiguration(
  configurationPath: string,
  title: string,
): { path: string; content: Record<string, unknown> } {
  let path: string
  try {
    path = realpathSync(configurationPath)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return { path: configurationPath, content: {} }
  }
  const text = readFileSync(path, 'utf8')
  const content = text.trim() === '' ? {} : parseJson(text)
  if (!isObject(content))
    throw new UsageError(`${path} is not a JSON object and was not changed`, [
      `run this command without --write, and add its output to the file or to the settings of ${title}`,
    ])
  return { path, content }
}
