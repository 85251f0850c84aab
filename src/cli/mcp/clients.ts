import { readFileSync, realpathSync } from 'node:fs'
import { join } from 'node:path'
import { hostFacts } from '../../base/host-facts.ts'
import { parseJson } from '../../base/parse-json.ts'
import { writePrivateFile } from '../../base/private-file.ts'
import { type Environment, homeFolder } from '../environment.ts'
import { UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { launchCommand } from '../launch-command.ts'
import type { Profile } from '../settings/profile.ts'
import type { Output } from '../terminal/output.ts'
import type { Allowance } from './allowances.ts'
import { fieldsOf } from './message.ts'

/** Command that a client starts. It contains no credential, except with `--include-key`. */
export interface ServerEntry {
  readonly type?: 'stdio'
  readonly command: string
  readonly args: readonly string[]
  readonly env?: Readonly<Record<string, string>>
}

/** A value that VS Code prompts for, once. */
interface PromptedInput {
  readonly type: 'promptString'
  readonly id: string
  readonly description: string
  readonly password: true
}

/** Servers in the configuration of a client. */
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
  /** Text that the client replaces by the key; undefined if the client supports none. */
  readonly keyReference?: string
}

const keyInput: PromptedInput = {
  type: 'promptString',
  id: 'workbase-api-key',
  description: 'API key of the Workbase runtime',
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

/** Returns the text that a client replaces by the key; undefined if the client supports none. */
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
  const typed = Object.entries(servers).map(([name, entry]) => [name, { type: 'stdio', ...entry }])
  const needsInput = Object.values(servers).some(({ env }) => env?.WB_API_KEY === clients.vscode.keyReference)
  return {
    ...(needsInput && { inputs: [keyInput] }),
    [field]: Object.fromEntries(typed) as Record<string, ServerEntry>,
  }
}

/** Returns a configuration, ready to paste. */
export function printConfiguration(output: Output, printed: ClientConfiguration): void {
  if (output.json) output.value(printed)
  else output.result(JSON.stringify(printed, null, 2))
}

/**
 * Returns the command that serves a workspace of a profile's runtime.
 *
 * @param workspace  undefined for the workspace that `wb mcp serve` finds by its key
 */
export function serverEntry(
  { name, nameFrom, url, urlFrom, local, dataDir, dataDirFrom, config }: Profile,
  workspace: string | undefined,
  allow: readonly Allowance[],
  io: Pick<Io, 'env' | 'script'>,
): ServerEntry {
  const args = ['mcp', 'serve', ...(workspace === undefined ? [] : ['-w', workspace])]
  if (allow.length > 0) args.push('--allow', allow.join(','))
  if (local) args.push('--local')
  else if (nameFrom !== 'wb profiles use' || urlFrom === 'profile') args.push('--profile', name)
  if (url !== undefined && urlFrom !== 'profile') args.push('--url', url)
  if (url === undefined && dataDirFrom !== 'platform') args.push('--data-dir', dataDir)
  const file = config.flag ?? config.variable ?? config.trusted
  if (url === undefined && file !== undefined) args.push('--config', file)
  const start = launchCommand(io)
  return { command: start.command, args: [...start.args, ...args] }
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

/**
 * Plans a change that adds servers. @throws UsageError  when the file is not valid JSON; it is not changed
 */
export function planChange(
  client: ClientName,
  servers: Readonly<Record<string, ServerEntry>>,
  environment: Environment,
): ConfigurationChange {
  const { title, field, path: place } = clients[client]
  const { path, content } = readConfiguration(place(homeFolder(environment)), title)
  const before = fieldsOf(content[field])
  const { inputs = [], [field]: entries } = clientConfiguration(client, servers)
  const wanted = fieldsOf(entries)
  const others = Object.keys(wanted).filter(
    name => name in before && JSON.stringify(before[name]) !== JSON.stringify(wanted[name]),
  )
  const known = Array.isArray(content.inputs) ? (content.inputs as unknown[]) : []
  const missing = inputs.filter(({ id }) => !known.some(input => fieldsOf(input).id === id))
  const after = {
    ...content,
    ...(missing.length > 0 && { inputs: [...known, ...missing] }),
    [field]: { ...before, ...wanted },
  }
  return {
    title,
    path,
    description: `change ${path}${others.length > 0 ? `, replacing the entry ${others.join(', ')}` : ''}`,
    isDone: missing.length === 0 && others.length === 0 && Object.keys(wanted).every(name => name in before),
    write: () => writePrivateFile(path, `${JSON.stringify(after, null, 2)}\n`),
  }
}

/** Reads the target of a symbolic link, so that the target is written instead of the link. */
function readConfiguration(place: string, title: string): { path: string; content: Record<string, unknown> } {
  let path: string
  try {
    path = realpathSync(place)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return { path: place, content: {} }
  }
  const text = readFileSync(path, 'utf8')
  const content = text.trim() === '' ? {} : parseJson(text)
  if (typeof content !== 'object' || content === null || Array.isArray(content))
    throw new UsageError(`${path} is not a JSON object and was not changed`, [
      `add the output of this command without --write to it, or to the settings of ${title}`,
    ])
  return { path, content: { ...content } }
}
