import { requireWorkspace, workspaceNotFound } from '../access/workspace.ts'
import { type Clock, timestamp } from '../base/clock.ts'
import { TimedOut, within } from '../base/deadline.ts'
import { newId } from '../base/id.ts'
import { WbError } from '../contract/errors.ts'
import type { McpServerCreate, McpServerPatch, McpTest } from '../contract/mcp-servers.ts'
import type { PageQuery } from '../contract/page.ts'
import { McpFailure, type McpTool, notInTime } from '../models/mcp.ts'
import { changeRow } from '../storage/change.ts'
import type { Page, Pager } from '../storage/cursor.ts'
import type { RowStore } from '../storage/rows.ts'
import { type McpServerRow, tables } from '../storage/tables.ts'

/** A server that does not list its tools in this time is given up. */
const testTimeoutMs = 10_000

export interface McpServersParts {
  readonly rows: RowStore
  readonly pager: Pager
  readonly clock: Clock
  /** @throws validation_error  at the field, for a URL that may not be called */
  readonly checkUrl: (field: string, url: string) => void
  /** Ask a server for its tools. @throws McpFailure */
  readonly listTools: (server: McpServerRow, signal: AbortSignal) => Promise<readonly McpTool[]>
}

/** The MCP servers whose tools agents of a workspace may call. @see contract 9 */
export class McpServers {
  constructor(private readonly parts: McpServersParts) {}

  /** By id. @throws workspace_not_found, invalid_cursor */
  async list(workspaceId: string, query: PageQuery): Promise<Page<McpServerRow>> {
    const { rows, pager } = this.parts
    await requireWorkspace(rows, workspaceId)
    return pager.page(tables.mcpServers, { index: 'byWorkspace', prefix: [workspaceId] }, query)
  }

  /** @throws workspace_not_found, validation_error */
  async create(workspaceId: string, fields: McpServerCreate): Promise<McpServerRow> {
    const { rows, clock, checkUrl } = this.parts
    checkUrl('url', fields.url)
    const now = timestamp(clock)
    const stamps = { createdAt: now, updatedAt: now }
    const row: McpServerRow = { workspaceId, mcpServerId: newId(), ...fields, ...stamps, reviewedTools: null }
    const outcome = await rows.atomic([
      { op: 'require', table: tables.workspaces, key: [workspaceId] },
      { op: 'insert', table: tables.mcpServers, row },
    ])
    if (!outcome.ok) throw workspaceNotFound(workspaceId)
    return row
  }

  /** @throws workspace_not_found, mcp_server_not_found */
  async get(workspaceId: string, mcpServerId: string): Promise<McpServerRow> {
    const stored = await this.parts.rows.get(tables.mcpServers, [workspaceId, mcpServerId])
    if (stored) return stored.row
    await requireWorkspace(this.parts.rows, workspaceId)
    throw notFound(mcpServerId)
  }

  /**
   * What was reviewed of the tools of one address says nothing of those of another.
   *
   * @throws workspace_not_found, mcp_server_not_found, validation_error
   */
  async update(workspaceId: string, mcpServerId: string, patch: McpServerPatch): Promise<McpServerRow> {
    const { rows, clock, checkUrl } = this.parts
    await this.get(workspaceId, mcpServerId)
    if (patch.url !== undefined) checkUrl('url', patch.url)
    const now = timestamp(clock)
    const changed = await changeRow(rows, tables.mcpServers, [workspaceId, mcpServerId], before => {
      const row = { ...before, ...patch, updatedAt: now }
      return row.url === before.url ? row : { ...row, reviewedTools: null }
    })
    if ('row' in changed) return changed.row
    throw notFound(mcpServerId)
  }

  /** @throws workspace_not_found, mcp_server_not_found */
  async delete(workspaceId: string, mcpServerId: string): Promise<void> {
    await this.get(workspaceId, mcpServerId)
    const key = [workspaceId, mcpServerId]
    const outcome = await this.parts.rows.atomic([{ op: 'delete', table: tables.mcpServers, key }])
    if (!outcome.ok) throw notFound(mcpServerId)
  }

  /** Connect and list the tools. @throws workspace_not_found, mcp_server_not_found */
  async test(workspaceId: string, mcpServerId: string, signal: AbortSignal): Promise<McpTest> {
    const { clock, listTools } = this.parts
    const server = await this.get(workspaceId, mcpServerId)
    const startedAt = clock.now()
    const outcome = (tools: string[], error: McpTest['error']): McpTest => ({
      ok: error === null,
      toolCount: tools.length,
      tools,
      latencyMs: clock.now() - startedAt,
      error,
    })
    try {
      const tools = await within(clock, testTimeoutMs, until => listTools(server, until), signal)
      return outcome(tools.map(({ name }) => name).sort(), null)
    } catch (error) {
      const failure = error instanceof TimedOut ? notInTime(error) : error
      if (!(failure instanceof McpFailure)) throw error
      return outcome([], { code: failure.code, message: failure.message })
    }
  }
}

function notFound(mcpServerId: string): WbError {
  return new WbError('mcp_server_not_found', `MCP server '${mcpServerId}' not found`)
}
