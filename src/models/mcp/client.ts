import type { CallToolResult, Client } from '@modelcontextprotocol/client'
import type { McpFailureCode } from '../../contract/mcp-servers.ts'
import type { CreateFailure } from '../endpoint.ts'
import type { EndpointRefused } from '../endpoint-guard.ts'
import { renderResultPart } from './render-result-part.ts'

export type McpSdk = typeof import('@modelcontextprotocol/client')

/** A tool, as its server describes it. */
export interface McpTool {
  readonly name: string
  readonly description: string
  /** JSON Schema of its arguments. */
  readonly inputSchema: Record<string, unknown>
}

/** A tool call: the name of the tool and its arguments. */
export interface McpCall {
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
}

/** The result of a tool call. */
export interface McpToolResult {
  readonly text: string
  /** True if the tool reported a failure. */
  readonly isError: boolean
}

/** Thrown if an MCP server cannot be used. The message can be shown; the cause can contain text from the server. */
export class McpFailure extends Error {
  override readonly name = 'McpFailure'

  constructor(
    readonly code: McpFailureCode,
    message: string,
    cause?: unknown,
  ) {
    super(message, { cause })
  }
}

/** Returns a cause that can be logged: only the name of an error, because its message could contain tokens. */
export function causeWithNameOnly(error: unknown): Error {
  return new Error(error instanceof Error ? error.name : typeof error)
}

/** Returns the failure of a server that did not respond in time. */
export function mcpTimeout(cause: unknown): McpFailure {
  return new McpFailure('timeout', 'The server did not respond in time.', cause)
}

/** Returns the failure of a server whose address the endpoint guard refuses. */
export function mcpEndpointRefusal({ message, hint }: EndpointRefused, cause: unknown): McpFailure {
  return new McpFailure(
    'endpoint_refused',
    `The runtime may not call the address: ${message}. ${hint}`,
    cause,
  )
}

/** Returns the failure of a server whose credential cannot be used. */
export const mcpCredentialFailure: CreateFailure = (_source, reason, { hint = '' } = {}) =>
  new McpFailure('credential_unavailable', `The server ${reason}. ${hint}`.trim())

/** Maximum total size of the responses in one session, in bytes. */
export const sessionBytesMax = 2_000_000
const toolPagesMax = 20
/** Maximum number of HTTP requests in one session: start, end, pages, and some responses to requests of the server. */
export const sessionRequestsMax = 64

/**
 * Creates an MCP client that identifies itself as this runtime.
 *
 * @param mode  how to negotiate the protocol version
 */
export function createMcpClient({ Client }: McpSdk, mode: 'auto' | 'legacy'): Client {
  return new Client(
    { name: 'workbase', version: '1' },
    { versionNegotiation: { mode }, listMaxPages: toolPagesMax },
  )
}

/** Returns all tools of a connected server. */
export async function listToolsOf(client: Client, signal: AbortSignal): Promise<McpTool[]> {
  const { tools } = await client.listTools(undefined, { signal, cacheMode: 'bypass' })
  return tools.map(({ name, description = '', inputSchema }) => ({ name, description, inputSchema }))
}

/** Calls a tool of a connected server. Returns an error response as a result. @see callMcpTool */
export async function callToolOf(
  { name, args }: McpCall,
  client: Client,
  signal: AbortSignal,
  { ProtocolError }: McpSdk,
): Promise<McpToolResult> {
  const request = { name, arguments: { ...args } }
  const result = client.callTool(request, { signal }).catch((error: unknown): CallToolResult => {
    if (!(error instanceof ProtocolError)) throw error
    return { content: [{ type: 'text', text: error.message }], isError: true }
  })
  const { content, structuredContent, isError = false } = await result
  const parts = content.map(renderResultPart).filter(part => part.text.trim() !== '')
  const texts = parts.map(({ text }) => text)
  // Most servers also send structured content as text, for older clients.
  const needsStructuredContent = structuredContent !== undefined && !parts.some(part => part.isText)
  if (needsStructuredContent) texts.unshift(JSON.stringify(structuredContent))
  return { text: texts.join('\n'), isError }
}
