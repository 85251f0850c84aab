import { shellWord } from '../../base/shell-word.ts'
import { type AvailableTool, agents } from '../../contract/agents.ts'
import { WbError } from '../../contract/errors.ts'
import { mcpToolId, namespacedId, nativeTools, parseMcpToolId } from '../../contract/tool-ids.ts'
import { UsageError } from '../errors.ts'
import { formatToolName } from '../fields/tool-name.ts'
import { nearestMatch } from '../terminal/nearest-match.ts'
import { listMcpServers } from './mcp-server.ts'
import type { ResolveContext } from './resolve.ts'

const listCommand = 'wb agents tools'

/** A tool, or all tools of a server, that a word of the command line can select. */
interface ToolMatch {
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
 * Resolves tools by ID, name or `SERVER/TOOL`. A server selects all tools that it currently offers.
 *
 * @returns undefined if no tools are given
 * @throws WbError agent_tool_unresolved  when no tool matches; suggests a similar name
 * @throws UsageError                     when several tools match
 */
export async function resolveToolIds(
  context: ResolveContext,
  workspaceId: string,
  wanted: readonly string[] | undefined,
): Promise<string[] | undefined> {
  if (wanted === undefined || wanted.length === 0) return undefined
  if (wanted.every(word => namespacedId.test(word))) return [...wanted]
  const meanings = await listToolMatches(context, workspaceId)
  const found: string[] = []
  for (const word of wanted)
    if (namespacedId.test(word)) found.push(word)
    else found.push(...requireEnabled(await findToolMatch(context, workspaceId, word, meanings)).toolIds)
  return [...new Set(found)]
}

/**
 * Resolves the tool patterns of rules, like {@link resolveToolIds}. A server or `SERVER/*` matches all current and
 * future tools of the server. Other patterns that end in `*` are returned unchanged.
 *
 * @throws WbError agent_tool_unresolved  when no tool matches; suggests a similar name
 * @throws UsageError                     when several tools match
 */
export async function resolveToolPatterns(
  context: ResolveContext,
  workspaceId: string,
  wanted: readonly string[],
): Promise<string[]> {
  const isPattern = (word: string) =>
    namespacedId.test(word) || (word.endsWith('*') && !word.endsWith('/*')) || word === '*'
  if (wanted.every(isPattern)) return [...wanted]
  const [known, registered] = await Promise.all([
    listToolMatches(context, workspaceId),
    listMcpServers(context.client, workspaceId),
  ])
  const unavailableServers = registered
    .filter(({ mcpServerId }) => !known.some(({ id }) => id === mcpServerId))
    .map(({ mcpServerId: id, label: name }): ToolMatch => ({ id, name, isServer: true, toolIds: [] }))
  const meanings = [...known, ...unavailableServers]
  const found: string[] = []
  for (const word of wanted) {
    if (isPattern(word)) found.push(word)
    else {
      const { id, isServer } = await findToolMatch(context, workspaceId, word.replace(/\/\*$/, ''), meanings)
      found.push(isServer ? mcpToolId(id, '*') : id)
    }
  }
  return found
}

async function listToolMatches({ client }: ResolveContext, workspaceId: string): Promise<ToolMatch[]> {
  const { items } = await client.call(agents.tools, { params: { workspaceId } })
  const off = Object.values(nativeTools)
    .filter(id => !items.some(tool => tool.id === id))
    .map(id => {
      const alias = id.replace(namespacedId, '')
      return { id, name: id, alias, isServer: false, toolIds: [id], isOff: true }
    })
  return [...items.map(toolMatchOf), ...serverMatches(items), ...off]
}

async function findToolMatch(
  context: ResolveContext,
  workspaceId: string,
  word: string,
  meanings: readonly ToolMatch[],
): Promise<ToolMatch> {
  const matches = meanings.filter(({ id, name, alias }) => [id, name, alias].includes(word))
  // An ID takes precedence over a name with the same text.
  const first = matches.find(({ id }) => id === word) ?? matches[0]
  if (!first) throw await notFoundError(context, workspaceId, word, meanings)
  if (matches.length > 1 && first.id !== word) throw ambiguousNameError(word, matches)
  return first
}

/** @throws WbError agent_tool_unresolved  when the tool is disabled */
function requireEnabled(meaning: ToolMatch): ToolMatch {
  if (!meaning.isDisabled) return meaning
  const fact = `the tool ${meaning.id} is disabled; enable it under chat.tools in the configuration`
  throw new WbError('agent_tool_unresolved', fact, { next: [listCommand] })
}

function toolMatchOf(tool: AvailableTool): ToolMatch {
  const { id } = tool
  const alias = parseMcpToolId(id)?.tool ?? id.replace(namespacedId, '')
  return { id, name: toolFlagName(tool), alias, isServer: false, toolIds: [id] }
}

/** Returns the name of a tool for `--tool`. */
export function toolFlagName({ id, serverId, serverLabel }: AvailableTool): string {
  const servers = serverId !== undefined && serverLabel !== undefined ? { [serverId]: serverLabel } : {}
  return formatToolName(id, servers)
}

function serverMatches(tools: readonly AvailableTool[]): ToolMatch[] {
  const servers = new Map<string, { name: string; toolIds: string[] }>()
  for (const { id, serverLabel } of tools) {
    const server = parseMcpToolId(id)?.server
    if (server === undefined || serverLabel === undefined) continue
    const known = servers.get(server) ?? { name: serverLabel, toolIds: [] }
    known.toolIds.push(id)
    servers.set(server, known)
  }
  return [...servers].map(([id, server]) => ({ id, isServer: true, ...server }))
}

function ambiguousNameError(word: string, matches: readonly ToolMatch[]): UsageError {
  const isClear = (name: string) => name !== word && matches.filter(one => one.name === name).length === 1
  return new UsageError(
    `"${word}" is the name of ${matches.length} tools or servers`,
    matches
      .map(
        ({ id, name, isDisabled }) =>
          shellWord(isClear(name) ? name : id) + (isDisabled ? '    disabled' : ''),
      )
      .sort(),
  )
}

async function notFoundError(
  context: ResolveContext,
  workspaceId: string,
  word: string,
  meanings: readonly ToolMatch[],
): Promise<WbError> {
  const known = meanings.flatMap(({ name, alias = name, isDisabled }) => (isDisabled ? [] : [name, alias]))
  const close = nearestMatch(word, known)
  if (close === undefined) return notOfferedError(context, workspaceId, word)
  const facts = { next: [`did you mean ${close}?`, listCommand], didYouMean: close }
  return new WbError('agent_tool_unresolved', `no tool is named "${word}"`, facts)
}

/**
 * Suggests a review of the server, which shows if the tool awaits approval or the server does not respond.
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
  const what = word === server ? 'no tools' : `no tool "${word.slice(server.length + 1)}"`
  const next = [listCommand, `wb mcp servers review ${shellWord(server)}`]
  return new WbError('agent_tool_unresolved', `MCP server ${server} offers agents ${what}`, { next })
}
