import { nearestMatch } from '../../base/nearest-match.ts'
import { shellWord } from '../../base/shell-word.ts'
import { type AvailableTool, agents } from '../../contract/agents.ts'
import { WbError } from '../../contract/errors.ts'
import { mcpToolId, namespacedId, nativeTools, parseMcpToolId } from '../../contract/tool-ids.ts'
import { UsageError } from '../errors.ts'
import { formatToolName } from '../fields/tool-name.ts'
import { listMcpServers } from './mcp-server.ts'
import type { ResolveContext } from './resolve.ts'

const listCommand = 'wb agents tools'

/** A tool, or a server with all its tools, that can be selected on the command line. */
interface SelectableTool {
  /** ID of the tool or server. */
  readonly id: string
  /** Preferred name. */
  readonly name: string
  /** Alternative name. */
  readonly alias?: string
  readonly isServer: boolean
  readonly toolIds: readonly string[]
  /** True for a built-in tool that the configuration does not enable. Rules can still refer to it. */
  readonly isDisabled?: boolean
}

/**
 * Resolves tools by ID, name or `SERVER/TOOL`. The name of a server selects all tools that the server currently offers.
 *
 * @returns undefined if `words` is empty
 * @throws WbError agent_tool_unresolved  no tool matches; suggests a similar name
 * @throws UsageError                     several tools match
 */
export async function resolveToolIds(
  context: ResolveContext,
  workspaceId: string,
  words: readonly string[] | undefined,
): Promise<string[] | undefined> {
  if (words === undefined || words.length === 0) return undefined
  if (words.every(word => namespacedId.test(word))) return [...words]
  const selectable = await listSelectableTools(context, workspaceId)
  const ids: string[] = []
  for (const word of words)
    if (namespacedId.test(word)) ids.push(word)
    else ids.push(...requireEnabled(await selectTool(context, workspaceId, word, selectable)).toolIds)
  return [...new Set(ids)]
}

/**
 * Resolves the tools of rules, like {@link resolveToolIds}. The name of a server, or `SERVER/*`, is converted to a
 * pattern for all its current and future tools. Other patterns that end in `*` are returned unchanged.
 *
 * @throws WbError agent_tool_unresolved  no tool matches; suggests a similar name
 * @throws UsageError                     several tools match
 */
export async function resolveToolPatterns(
  context: ResolveContext,
  workspaceId: string,
  words: readonly string[],
): Promise<string[]> {
  const isPattern = (word: string) =>
    namespacedId.test(word) || (word.endsWith('*') && !word.endsWith('/*')) || word === '*'
  if (words.every(isPattern)) return [...words]
  const [availableTools, servers] = await Promise.all([
    listSelectableTools(context, workspaceId),
    listMcpServers(context.client, workspaceId),
  ])
  const unavailableServers = servers
    .filter(({ mcpServerId }) => !availableTools.some(({ id }) => id === mcpServerId))
    .map(({ mcpServerId: id, label: name }): SelectableTool => ({ id, name, isServer: true, toolIds: [] }))
  const selectable = [...availableTools, ...unavailableServers]
  const patterns: string[] = []
  for (const word of words) {
    if (isPattern(word)) patterns.push(word)
    else {
      const { id, isServer } = await selectTool(context, workspaceId, word.replace(/\/\*$/, ''), selectable)
      patterns.push(isServer ? mcpToolId(id, '*') : id)
    }
  }
  return patterns
}

async function listSelectableTools(
  { client }: ResolveContext,
  workspaceId: string,
): Promise<SelectableTool[]> {
  const { items } = await client.call(agents.tools, { params: { workspaceId } })
  const disabled = Object.values(nativeTools)
    .filter(id => !items.some(tool => tool.id === id))
    .map(id => {
      const alias = id.replace(namespacedId, '')
      return { id, name: id, alias, isServer: false, toolIds: [id], isDisabled: true }
    })
  return [...items.map(toSelectableTool), ...selectableServers(items), ...disabled]
}

async function selectTool(
  context: ResolveContext,
  workspaceId: string,
  word: string,
  selectable: readonly SelectableTool[],
): Promise<SelectableTool> {
  const matches = selectable.filter(({ id, name, alias }) => [id, name, alias].includes(word))
  // An ID takes precedence over an equal name.
  const first = matches.find(({ id }) => id === word) ?? matches[0]
  if (!first) throw await notFoundError(context, workspaceId, word, selectable)
  if (matches.length > 1 && first.id !== word) throw ambiguousNameError(word, matches)
  return first
}

/** @throws WbError agent_tool_unresolved  the tool is disabled */
function requireEnabled(match: SelectableTool): SelectableTool {
  if (!match.isDisabled) return match
  const message = `the tool ${match.id} is disabled; enable it under chat.tools in the configuration`
  throw new WbError('agent_tool_unresolved', message, { next: [listCommand] })
}

function toSelectableTool(tool: AvailableTool): SelectableTool {
  const { id } = tool
  const alias = parseMcpToolId(id)?.tool ?? id.replace(namespacedId, '')
  return { id, name: toolFlagName(tool), alias, isServer: false, toolIds: [id] }
}

/** Returns the name of a tool for `--tool`. */
export function toolFlagName({ id, serverId, serverLabel }: AvailableTool): string {
  const servers = serverId !== undefined && serverLabel !== undefined ? { [serverId]: serverLabel } : {}
  return formatToolName(id, servers)
}

function selectableServers(tools: readonly AvailableTool[]): SelectableTool[] {
  const servers = new Map<string, { name: string; toolIds: string[] }>()
  for (const { id, serverLabel } of tools) {
    const server = parseMcpToolId(id)?.server
    if (server === undefined || serverLabel === undefined) continue
    const entry = servers.get(server) ?? { name: serverLabel, toolIds: [] }
    entry.toolIds.push(id)
    servers.set(server, entry)
  }
  return [...servers].map(([id, server]) => ({ id, isServer: true, ...server }))
}

function ambiguousNameError(word: string, matches: readonly SelectableTool[]): UsageError {
  const isUnique = (name: string) =>
    name !== word && matches.filter(other => other.name === name).length === 1
  return new UsageError(
    `"${word}" is the name of ${matches.length} tools or servers`,
    matches
      .map(
        ({ id, name, isDisabled }) =>
          shellWord(isUnique(name) ? name : id) + (isDisabled ? '    disabled' : ''),
      )
      .sort(),
  )
}

async function notFoundError(
  context: ResolveContext,
  workspaceId: string,
  word: string,
  selectable: readonly SelectableTool[],
): Promise<WbError> {
  const names = selectable.flatMap(({ name, alias = name, isDisabled }) => (isDisabled ? [] : [name, alias]))
  const nearest = nearestMatch(word, names)
  if (nearest === undefined) return notOfferedError(context, workspaceId, word)
  const facts = { next: [`did you mean ${nearest}?`, listCommand], didYouMean: nearest }
  return new WbError('agent_tool_unresolved', `no tool is named "${word}"`, facts)
}

/**
 * Returns the error for a tool that is not offered. If the name contains a server, suggests reviewing that server. The
 * review shows whether the tool has not been accepted, or the server does not respond.
 */
async function notOfferedError(
  { client }: ResolveContext,
  workspaceId: string,
  word: string,
): Promise<WbError> {
  const servers = await listMcpServers(client, workspaceId)
  const server = servers.map(({ label }) => label).find(name => word === name || word.startsWith(`${name}/`))
  if (server === undefined)
    return new WbError('agent_tool_unresolved', `no tool is named "${word}"`, { next: [listCommand] })
  const missingTools = word === server ? 'no tools' : `no tool "${word.slice(server.length + 1)}"`
  const next = [listCommand, `wb mcp servers review ${shellWord(server)}`]
  return new WbError('agent_tool_unresolved', `MCP server ${server} offers ${missingTools} to agents`, {
    next,
  })
}
