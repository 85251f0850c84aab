import type { Server } from '@modelcontextprotocol/server'
import { z } from 'zod'
import { mcpChatTools, mcpToolAccess } from '../contract/tool-access.ts'
import type { FacadeResult, FacadeTool } from './tool.ts'

/** What is offered at one request. */
export interface Offered {
  readonly workspaceId: string
  /** Of the runtime. */
  readonly version: string
  readonly tools: readonly FacadeTool[]
  /** @param sent  arguments, not validated yet */
  invoke(tool: FacadeTool, sent: unknown): Promise<FacadeResult>
}

/** The protocol's library is loaded with the first request, as most processes get none. */
async function library() {
  return import('@modelcontextprotocol/server')
}

/**
 * Answer one HTTP request of an MCP client, by a server that lives as long as that.
 *
 * @param message  the body, as it was read
 */
export async function serveOnce(offered: Offered, request: Request, message: unknown): Promise<Response> {
  const sdk = await library()
  const make = () => serverOf(sdk, offered)
  if (request.method === 'POST') return sdk.createMcpHandler(make).fetch(request, { parsedBody: message })
  const transport = new sdk.WebStandardStreamableHTTPServerTransport({ sessionIdGenerator: undefined })
  await make().connect(transport)
  return transport.handleRequest(request)
}

/** True of a message that asks for a stream of what happens from now on. */
export function isSubscription(message: unknown): boolean {
  return (message as { method?: unknown } | null)?.method === 'subscriptions/listen'
}

function serverOf(sdk: typeof import('@modelcontextprotocol/server'), offered: Offered): Server {
  const { workspaceId, version, tools } = offered
  const server = new sdk.Server(
    { name: `workbase:${workspaceId}`, version },
    { capabilities: { tools: { listChanged: true }, resources: {} } },
  )
  server.setRequestHandler('tools/list', () => ({ tools: tools.map(listed) }))
  // A batch holds a hundred calls: they are made in turn.
  let before: Promise<unknown> = Promise.resolve()
  server.setRequestHandler('tools/call', ({ params }) => {
    const answer = before.then(() => called(offered, params.name, params.arguments))
    before = answer
    return answer
  })
  return server
}

async function called(offered: Offered, name: string, sent: unknown) {
  const tool = offered.tools.find(known => known.name === name)
  if (!tool) return result({ payload: `MCP error -32602: Tool ${name} not found`, isError: true })
  return result(await offered.invoke(tool, sent ?? {}))
}

function result({ payload, isError }: FacadeResult) {
  const text = typeof payload === 'string' ? payload : JSON.stringify(payload, null, 2)
  return { content: [{ type: 'text' as const, text }], ...(isError && { isError }) }
}

const schemas = new WeakMap<FacadeTool, { type: 'object' }>()

function listed(tool: FacadeTool) {
  const { name, title, description, input } = tool
  const inputSchema = schemas.get(tool) ?? schemaOf(input)
  schemas.set(tool, inputSchema)
  const changes = mcpToolAccess[name].kind === 'needs'
  return {
    name,
    title,
    description,
    inputSchema,
    annotations: changes
      ? { readOnlyHint: false, destructiveHint: name.startsWith('delete_') }
      : { readOnlyHint: !mcpChatTools.includes(name) },
  }
}

function schemaOf(input: z.ZodObject): { type: 'object' } {
  const { $schema: _, ...schema } = z.toJSONSchema(input, {
    io: 'input',
    unrepresentable: 'any',
    override({ jsonSchema }) {
      // The format says it, in words that a model is charged less for.
      if (jsonSchema.format) delete jsonSchema.pattern
    },
  })
  return schema as { type: 'object' }
}
