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

/** A tool that is called, and with what. */
export interface McpCall {
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
}

/** What a call gave. */
export interface McpAnswer {
  readonly text: string
  /** The tool says that it failed. */
  readonly isError: boolean
}

/** A tool server that cannot be used. Its message is ours and goes on to the wire; what the server said is in the cause. */
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

/** The failure of a server that was waited for as long as may be. */
export function mcpTimeout(cause: unknown): McpFailure {
  return new McpFailure('timeout', 'The server did not answer in time.', cause)
}

/** Of all answers of one session. */
export const sessionBytesMax = 2_000_000
const toolPagesMax = 20
/** Of one session: what begins and ends it, its pages, and a few answers to what its server asks. */
export const sessionRequestsMax = 64

/** What this runtime says of itself to a server. @param mode  how the version of the protocol is agreed upon */
export function createMcpClient({ Client }: McpSdk, mode: 'auto' | 'legacy'): Client {
  return new Client(
    { name: 'workbase', version: '1' },
    { versionNegotiation: { mode }, listMaxPages: toolPagesMax },
  )
}

/** The tools that the server at the other end offers. */
export async function listToolsOf(client: Client, signal: AbortSignal): Promise<McpTool[]> {
  const { tools } = await client.listTools(undefined, { signal, cacheMode: 'bypass' })
  return tools.map(({ name, description = '', inputSchema }) => ({ name, description, inputSchema }))
}

/** What the server at the other end answers to a call; a refusal is an answer. @see callMcpTool */
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
  const isUntold = structuredContent !== undefined && !parts.some(part => part.isText)
  if (isUntold) texts.unshift(JSON.stringify(structuredContent))
  return { text: texts.join('\n'), isError }
}
