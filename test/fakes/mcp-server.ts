import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  type CallToolResult,
  createMcpHandler,
  McpServer,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server'
import { H3, toNodeHandler } from 'h3'
import { onTestFinished } from 'vitest'
import { z } from 'zod'

/** A tool of a fake server. */
export interface FakeTool {
  readonly name: string
  /** Called for each request, so the description can change. */
  readonly description?: () => string
  /** Returns the tool name by default. */
  readonly call?: (args: Record<string, unknown>) => CallToolResult | Promise<CallToolResult>
}

export interface McpServerOptions {
  /** Tools or tool names, read for each request. */
  readonly tools?: readonly (string | FakeTool)[]
  /** Creates a server for each session or request, in place of a server with `tools`. */
  readonly createServer?: () => McpServer
  /** Supports only the protocol of 2025, with sessions. */
  readonly usesSessions?: boolean
  /** Handles a request in place of the server, unless it returns undefined. */
  readonly intercept?: (request: Request) => Response | undefined | Promise<Response | undefined>
}

export interface McpServerFake {
  /** `http://127.0.0.1:port/mcp` */
  readonly url: string
  readonly host: string
  readonly received: { readonly method: string; readonly authorization: string | null }[]
  /** Sessions that are open. */
  readonly sessions: ReadonlySet<string>
}

/** Starts an MCP server with Streamable HTTP on a free loopback port, until the test ends. */
export async function startMcpServer(options: McpServerOptions = {}): Promise<McpServerFake> {
  const received: McpServerFake['received'] = []
  const sessions = new Map<string, WebStandardStreamableHTTPServerTransport>()
  const make = options.createServer ?? (() => serverOf(options.tools ?? ['search', 'add']))
  const modern = createMcpHandler(make)

  async function inSession(request: Request): Promise<Response> {
    const known = sessions.get(request.headers.get('mcp-session-id') ?? '')
    if (known) return known.handleRequest(request)
    const transport = new WebStandardStreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: id => void sessions.set(id, transport),
      onsessionclosed: id => void sessions.delete(id),
    })
    await make().connect(transport)
    return transport.handleRequest(request)
  }

  const answer = async (request: Request): Promise<Response> => {
    received.push({ method: request.method, authorization: request.headers.get('authorization') })
    const response = await options.intercept?.(request)
    if (response) return response
    return options.usesSessions ? inSession(request) : modern.fetch(request)
  }
  const server = createServer(toNodeHandler(new H3().all('/**', ({ req }) => answer(req)))).listen(
    0,
    '127.0.0.1',
  )
  await once(server, 'listening')
  onTestFinished(async () => {
    server.closeAllConnections()
    server.close()
    await modern.close()
  })
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`
  return {
    url: `http://${host}/mcp`,
    host,
    received,
    get sessions() {
      return new Set(sessions.keys())
    },
  }
}

function serverOf(tools: readonly (string | FakeTool)[]): McpServer {
  const server = new McpServer({ name: 'fake', version: '1.0.0' })
  for (const tool of tools) {
    const { name, description, call }: FakeTool = typeof tool === 'string' ? { name: tool } : tool
    const about = description?.() ?? `does ${name}`
    if (call) server.registerTool(name, { description: about, inputSchema: z.looseObject({}) }, call)
    else
      server.registerTool(name, { description: about }, () => ({ content: [{ type: 'text', text: name }] }))
  }
  return server
}
