import type { TestResponse } from '../harness/runtime.ts'

export type JsonObject = Readonly<Record<string, unknown>>

/** Sends a request of one principal, such as `GET /api/v1/workspaces`. */
export type Send = (
  line: string,
  json?: unknown,
  headers?: Readonly<Record<string, string>>,
) => Promise<TestResponse>

const acceptsEvents = { accept: 'application/json, text/event-stream' }

/** Sends an MCP request without a session, and returns its result or its error. */
export async function callMcp(
  send: Send,
  workspace: string,
  method: string,
  params: object = {},
): Promise<JsonObject> {
  const message = { jsonrpc: '2.0', id: 1, method, params }
  const { text } = await send(`POST ${workspace}/mcp`, message, acceptsEvents)
  const [, data] = /^data: (.+)$/m.exec(text) ?? []
  if (data === undefined) throw new Error(`the response contains no message: ${text}`)
  const { result, error } = JSON.parse(data) as { result?: JsonObject; error?: JsonObject }
  return result ?? error!
}

/** Calls a tool of the MCP route, and returns its text. */
export async function callMcpTool(
  send: Send,
  workspace: string,
  name: string,
  args: object = {},
): Promise<string> {
  const result = await callMcp(send, workspace, 'tools/call', { name, arguments: args })
  return JSON.stringify(result)
}

export const itemsOf = ({ body }: TestResponse) => body.items as JsonObject[]
export const hitsOf = ({ body }: TestResponse) => body as unknown as { id: string; payload: JsonObject }[]
export const codeOf = ({ body }: TestResponse) => (body.error as JsonObject | undefined)?.code
