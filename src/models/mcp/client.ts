import type { CallToolResult, Client } from '@modelcontextprotocol/client'
import type { McpFailureCode } from '../../contract/mcp-servers.ts'
import { shownPart } from './shown-part.ts'

export type McpSdk = typeof import('@modelcontextprotocol/client')

/** A tool as its server describes it. */
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

/** Result of a tool call. */
export interface McpAnswer {
  readonly text: string
  /** True if the tool reported a failure. */
  readonly isError: boolean
}

/** A tool server that cannot be used. The message is safe to show; the cause holds the text of the server. */
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

/** Returns the name of an error as a cause for the log. Its text may repeat tokens that were sent to a server. */
export function namedCause(error: unknown): Error {
  return new Error(error instanceof Error ? error.name : typeof error)
}

/** Returns the failure of a server that did not answer in time. */
export function mcpTimeout(cause: unknown): McpFailure {
  return new McpFailure('timeout', 'The server did not answer in time.', cause)
}

/** Maximum size of all answers of one session, in bytes. */
export const sessionBytesMax = 2_000_000
const toolPagesMax = 20
/** Maximum number of requests of one session: start, end, pages, and a few answers to requests of the server. */
export const sessionRequestsMax = 64

/** Creates a client that identifies this runtime. @param mode  how to negotiate the protocol version */
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

/** Calls a tool of a connected server. An error response is a result, too. @see callMcpTool */
export async function callToolOf(
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
  // Most servers also send structured content as text, for older clients.
  const needsStructuredContent = structuredContent !== undefined && !parts.some(part => part.isText)
  if (needsStructuredContent) texts.unshift(JSON.stringify(structuredContent))
  return { text: texts.join('\n'), isError }
}
