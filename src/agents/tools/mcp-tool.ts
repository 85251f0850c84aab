import { mcpToolId } from '../../contract/tool-ids.ts'
import { type McpCall, McpFailure, type McpToolResult } from '../../models/mcp/client.ts'
import type { OfferedTool } from '../../workspaces/mcp-offer.ts'
import type { Tool, ToolResult } from './tool.ts'
import { failureResult, successResult, ToolError } from './tool-result.ts'

/** Maximum time in milliseconds for listing the tools of one server. */
export const listTimeoutMs = 5_000

/** The MCP server that offers a tool. */
interface ToolServer {
  readonly id: string
  readonly label: string
  /** True if the workspace registered the server, false if the configuration declares it. */
  readonly isRegistered: boolean
}

/**
 * Creates an agent tool from a tool of an MCP server.
 *
 * @param callTool  calls the tool; the message of an `McpFailure` or a `ToolError` is sent to the model
 */
export function createMcpTool(
  { id, label, isRegistered }: ToolServer,
  { name, description, inputSchema, hash }: OfferedTool,
  callTool: (call: McpCall, signal: AbortSignal) => Promise<McpToolResult>,
): Tool {
  return {
    id: mcpToolId(id, name),
    description,
    source: 'mcp',
    inputSchema,
    ...(isRegistered && { serverId: id }),
    serverLabel: label,
    isExternal: true,
    readsUntrusted: true,
    hash,
    async call(args, { signal }) {
      try {
        return resultOf(await callTool({ name, args }, signal))
      } catch (error) {
        if (error instanceof McpFailure || error instanceof ToolError) return failureResult(error.message)
        throw error
      }
    },
  }
}

function resultOf({ text, isError }: McpToolResult): ToolResult {
  if (isError) return failureResult(text, 'the tool reported an error')
  return successResult(text === '' ? 'The tool returned no text.' : text)
}
