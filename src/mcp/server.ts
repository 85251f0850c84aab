import type { Server } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { mcpChatTools, mcpToolAccess } from '../contract/tool-access.ts'
import type { ResourceOperations } from './resources.ts'
import type { FacadeOperation, FacadeResult, FacadeTool } from './tool.ts'

/** Tools and resources for one request. */
export interface McpRequestOptions {
  readonly workspaceId: string
  /** Version of the runtime. */
  readonly version: string
  readonly tools: readonly FacadeTool[]
  readonly resources: ResourceOperations
  /** Returns the instructions that a client receives when it connects. */
  instructions(): Promise<string>
  /**
   * Runs an operation. Authorizes the caller again before each operation but the first.
   *
   * @param args  arguments that are not validated yet
   * @throws unauthorized, forbidden  the caller no longer has access
   */
  invoke(operation: FacadeOperation, args: unknown): Promise<FacadeResult>
}

type Sdk = typeof import('@modelcontextprotocol/server')

/** Loads the MCP library on the first request, because most processes receive no MCP requests. */
async function loadLibrary() {
  return import('@modelcontextprotocol/server')
}

/**
 * Handles one HTTP request of an MCP client, with a server for this request only.
 *
 * @param message  body of the request, already parsed
 */
export async function serveMcpRequest(
  options: McpRequestOptions,
  request: Request,
  message: unknown,
): Promise<Response> {
  const sdk = await loadLibrary()
  const instructions = isInitialize(message) ? await options.instructions() : undefined
  const create = () => createServer(sdk, options, instructions)
  if (request.method === 'POST') return sdk.createMcpHandler(create).fetch(request, { parsedBody: message })
  const transport = new sdk.WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: undefined })
  await create().connect(transport)
  return transport.handleRequest(request)
}

/** Returns true for a message that opens a stream of events. */
export function isSubscription(message: unknown): boolean {
  return (message as { method?: unknown } | null)?.method === 'subscriptions/listen'
}

/** Returns true for a message whose response contains the instructions of the server. */
function isInitialize(message: unknown): boolean {
  const { method } = { ...(message as { method?: unknown } | null) }
  return method === 'initialize' || method === 'server/discover'
}

function createServer(sdk: Sdk, options: McpRequestOptions, instructions: string | undefined): Server {
  const { workspaceId, version, tools, resources } = options
  const server = new sdk.Server(
    { name: `workbase:${workspaceId}`, version },
    { capabilities: { tools: { listChanged: true }, resources: {} }, instructions },
  )
  server.setRequestHandler('tools/list', () => ({ tools: tools.map(describeTool) }))
  // Calls run in sequence, because a batch can contain a hundred of them.
  let previous: Promise<unknown> = Promise.resolve()
  const enqueue = <T>(work: () => Promise<T>): Promise<T> => {
    const result = previous.then(work)
    previous = result.catch(() => {})
    return result
  }
  const readResource = <T>(operation: FacadeOperation, params: unknown) =>
    enqueue(async () => resourceResult<T>(sdk, await options.invoke(operation, params ?? {})))
  server.setRequestHandler('tools/call', ({ params }) =>
    enqueue(() => callTool(options, params.name, params.arguments)),
  )
  server.setRequestHandler('resources/list', ({ params }) => readResource(resources.list, params))
  server.setRequestHandler('resources/templates/list', ({ params }) =>
    readResource(resources.templates, params),
  )
  server.setRequestHandler('resources/read', ({ params }) => readResource(resources.read, params))
  return server
}

async function callTool(options: McpRequestOptions, name: string, args: unknown) {
  const tool = options.tools.find(candidate => candidate.name === name)
  if (!tool) return toToolResult(name, { payload: `MCP error -32602: Tool ${name} not found`, isError: true })
  return toToolResult(name, await options.invoke(tool, args ?? {}))
}

function toToolResult(tool: string, { payload, isError, nextCursor }: FacadeResult) {
  const content = [textContent(typeof payload === 'string' ? payload : JSON.stringify(payload, null, 2))]
  if (!nextCursor) return { content, ...(isError && { isError }) }
  const nextPageNote = `There are more results. To get the next page, call ${tool} with the same arguments and "cursor": "${nextCursor}".`
  return { content: [...content, textContent(nextPageNote)], _meta: { 'workbase/nextCursor': nextCursor } }
}

function textContent(text: string) {
  return { type: 'text' as const, text }
}

/**
 * Returns the result of an operation on resources.
 *
 * @throws ProtocolError  the operation was denied or failed
 */
function resourceResult<T>({ ProtocolError, ProtocolErrorCode }: Sdk, result: FacadeResult): T {
  const { payload, isError, code } = result
  if (!isError) return payload as T
  if (code === 'forbidden') {
    const { message, ...facts } = payload as { message: string }
    throw new ProtocolError(ProtocolErrorCode.InvalidRequest, message, facts)
  }
  const isInvalid = code?.endsWith('_not_found') || code === 'invalid_cursor' || code === 'validation_error'
  const errorNumber = isInvalid ? ProtocolErrorCode.InvalidParams : ProtocolErrorCode.InternalError
  throw new ProtocolError(errorNumber, String(payload), code && { code })
}

const schemas = new WeakMap<FacadeTool, { type: 'object' }>()

function describeTool(tool: FacadeTool) {
  const { name, title, description, input } = tool
  const inputSchema = schemas.get(tool) ?? schemaOf(input)
  schemas.set(tool, inputSchema)
  const changesData = mcpToolAccess[name].kind === 'needs'
  return {
    name,
    title,
    description,
    inputSchema,
    annotations: changesData
      ? { readOnlyHint: false, destructiveHint: name.startsWith('delete_') }
      : { readOnlyHint: !mcpChatTools.includes(name) },
  }
}

function schemaOf(input: z.ZodType): { type: 'object' } {
  const { $schema: _, ...schema } = z.toJSONSchema(input, {
    io: 'input',
    unrepresentable: 'any',
    override({ jsonSchema }) {
      // The pattern repeats the format, and would cost the model tokens.
      if (jsonSchema.format) delete jsonSchema.pattern
    },
  })
  return schema as { type: 'object' }
}
