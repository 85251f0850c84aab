import type { Caller, Handlers } from '../access/caller.ts'
import { requireWorkspace } from '../access/require-workspace.ts'
import { once } from '../base/once.ts'
import { WbError } from '../contract/errors.ts'
import type { mcp } from '../contract/mcp.ts'
import type { RowStore } from '../storage/rows.ts'
import { type ChatToolParts, chatTools } from './chat-tools.ts'
import { buildInstructions, type InstructionParts } from './instructions.ts'
import { type InvokeParts, invokeOperation } from './invoke-operation.ts'
import { type ReadToolParts, readTools } from './read-tools.ts'
import { type ResourceParts, resourceOperations } from './resources.ts'
import { isSubscription, type McpServerParts, serveMcpRequest } from './server.ts'
import { type RequestScope, requireTokenScope } from './step-up.ts'
import { type WriteToolParts, writeTools } from './write-tools.ts'

export interface McpParts extends InvokeParts {
  readonly rows: RowStore
  /** Settings of the configuration. */
  readonly settings: { readonly enabled: boolean; readonly exposeChat: boolean }
  readonly version: string
  /** Handlers of the routes that the tools call, by topic. */
  readonly routes: ReadToolParts['routes'] &
    WriteToolParts['routes'] &
    ChatToolParts['routes'] &
    ResourceParts['routes'] &
    InstructionParts['routes']
  readonly conversations: ReadToolParts['conversations']
  readonly replies: ChatToolParts['replies']
  readonly requestScope: RequestScope
}

/** Opens the MCP server of workspaces: its tools, its resources and its routes. */
export function openMcp(parts: McpParts) {
  const { settings } = parts
  const tools = once(() => [
    ...readTools(parts),
    ...writeTools(parts),
    ...(settings.exposeChat ? chatTools(parts) : []),
  ])
  const resources = resourceOperations(parts)
  const serverPartsFor = (workspaceId: string, caller: Caller): McpServerParts => ({
    workspaceId,
    version: parts.version,
    tools: tools(),
    resources,
    instructions: () => buildInstructions(parts, { workspaceId, caller }),
    invoke: (operation, args) => invokeOperation(parts, operation, args, { workspaceId, caller }),
  })

  async function respond(workspaceId: string, caller: Caller, isEndless: boolean, message?: unknown) {
    if (!settings.enabled)
      throw new WbError('not_found', 'this runtime does not serve tools over MCP', {
        hint: 'An operator can set mcp.enabled in the configuration.',
      })
    await requireWorkspace(parts.rows, workspaceId)
    requireTokenScope(message, { workspaceId, caller }, parts.requestScope)
    const serverParts = serverPartsFor(workspaceId, caller)
    return {
      protocol: { respond: (request: Request) => serveMcpRequest(serverParts, request, message), isEndless },
    }
  }

  const handlers: Handlers<typeof mcp> = {
    send: ({ params, body }, caller) => respond(params.workspaceId, caller, isSubscription(body), body),
    listen: ({ params }, caller) => respond(params.workspaceId, caller, true),
    end: ({ params }, caller) => respond(params.workspaceId, caller, false),
  }
  return {
    handlers,
    /**
     * Returns the names of the tools that a client gets, by a `tools/list` request.
     *
     * @throws Error  the response contains no list of tools
     */
    listTools: (workspaceId: string, caller: Caller) => listToolNames(serverPartsFor(workspaceId, caller)),
  }
}

async function listToolNames(serverParts: McpServerParts): Promise<string[]> {
  const headers = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' }
  const request = new Request('http://localhost/mcp', { method: 'POST', headers })
  const response = await serveMcpRequest(serverParts, request, {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/list',
  })
  const [, data] = /^data: (.+)$/m.exec(await response.text()) ?? []
  const { result } = JSON.parse(data ?? '{}') as { result?: { tools: { name: string }[] } }
  if (!result) throw new Error('the response lists no tools')
  return result.tools.map(({ name }) => name)
}
