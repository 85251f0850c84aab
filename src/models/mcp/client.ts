import type { CallToolResult, Client } from '@modelcontextprotocol/client'
import type { McpFailureCode } from '../../contract/mcp-servers.ts'
import { shownPart } from './parts.ts'

export type McpSdk = typeof import('@modelcontextprotocol/client')

/** Tool as described by its server. */
export interface McpTool {
  readonly name: string
  readonly description: string
  /** JSON Schema of the arguments. */
  readonly inputSchema: Record<string, unknown>
}

/** Name and arguments of a tool call. */
export interface McpCall {
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
}

/** Result of a tool call. */
export interface McpAnswer {
  readonly text: string
  /** True if the tool reports a failure. */
  readonly isError: boolean
}

/**
 * Failure of a tool server. Its message is our own and is sent to the caller. The server's message is only in
 * the cause.
 */
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

/** Returns the failure of a server that exceeded the time limit. */
export function notInTime(cause: unknown): McpFailure {
  return new McpFailure('timeout', 'The server did not answer in time.', cause)
}

/** Maximum total size of all responses in a session, in bytes. */
export const answerBytesMax = 2_000_000
const toolPagesMax = 20
/**
 * Maximum number of requests in a session: setup, teardown, pages, and a few responses to requests of the
 * server.
 */
export const requestsMax = 64

/**
 * Creates a client that identifies this runtime.
 *
 * @param mode  how the protocol version is negotiated
 */
export function mcpClient({ Client }: McpSdk, mode: 'auto' | 'legacy'): Client {
  return new Client(
    { name: 'workbase', version: '1' },
    { versionNegotiation: { mode }, listMaxPages: toolPagesMax },
  )
}

/** Returns the tools of the connected server. */
export async function toolsOf(client: Client, signal: AbortSignal): Promise<McpTool[]> {
  const { tools } = await client.listTools(undefined, { signal, cacheMode: 'bypass' })
  return tools.map(({ name, description = '', inputSchema }) => ({ name, description, inputSchema }))
}

/**
 * Calls a tool of the connected server. A protocol error becomes an answer with `isError`.
 *
 * @see callMcpTool
 */
export async function answerTo(
  { name, args }: McpCall,
  client: Client,
  signal: AbortSignal,
  { ProtocolError }: McpSdk,
): Promise<McpAnswer> {
  const request = { name, arguments: { ...args } }
  const asked = client.callTool(request, { signal }).catch((error: unknown): CallToolResult => {
    if (!(error instanceof ProtocolError)) throw error
    return { content: [{ type: 'text', text: error.message }], isError: true }
  })
  const { content, structuredContent, isError = false } = await asked
  const parts = content.map(shownPart).filter(part => part.text.trim() !== '')
  const texts = parts.map(({ text }) => text)
  // // Most servers also send structured content as text, for older clients.
  const isUntold = structuredContent !== undefined && !parts.some(part => part.isText)
  if (isUntold) texts.unshift(JSON.stringify(structuredContent))
  return { text: texts.join('\n'), isError }
}
