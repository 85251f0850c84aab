import type { Caller, Handlers } from '../access/caller.ts'
import { requireWorkspace } from '../access/require-workspace.ts'
import { once } from '../base/once.ts'
import { WbError } from '../contract/errors.ts'
import type { mcp } from '../contract/mcp.ts'
import type { RowStore } from '../storage/rows.ts'
import { type ChatToolDependencies, chatTools } from './chat-tools.ts'
import { buildInstructions, type InstructionDependencies } from './instructions.ts'
import { type InvokeDependencies, invokeOperation } from './invoke-operation.ts'
import { type ReadToolDependencies, readTools } from './read-tools.ts'
import { type ResourceDependencies, resourceOperations } from './resources.ts'
import { isSubscription, type McpRequestOptions, serveMcpRequest } from './server.ts'
import { type RequestScope, requireTokenScope } from './step-up.ts'
import { type WriteToolDependencies, writeTools } from './write-tools.ts'

export interface McpDependencies extends InvokeDependencies {
  readonly rows: RowStore
  /** Settings of the configuration. */
  readonly settings: { readonly enabled: boolean; readonly exposeChat: boolean }
  readonly version: string
  /** Handlers of the routes that the tools call, by topic. */
  readonly routes: ReadToolDependencies['routes'] &
    WriteToolDependencies['routes'] &
    ChatToolDependencies['routes'] &
    ResourceDependencies['routes'] &
    InstructionDependencies['routes']
  readonly conversations: ReadToolDependencies['conversations']
  readonly replies: ChatToolDependencies['replies']
  readonly requestScope: RequestScope
}

/** Creates the MCP endpoint of the workspaces: its tools, resources and route handlers. */
export function openMcp(deps: McpDependencies) {
  const { settings } = deps
  const tools = once(() => [
    ...readTools(deps),
    ...writeTools(deps),
    ...(settings.exposeChat ? chatTools(deps) : []),
  ])
  const resources = resourceOperations(deps)
  const serverOptionsFor = (workspaceId: string, caller: Caller): McpRequestOptions => {
    let isFirst = true
    return {
      workspaceId,
      version: deps.version,
      tools: tools(),
      resources,
      instructions: () => buildInstructions(deps, { workspaceId, caller }),
      async invoke(operation, args) {
        // The operations of a batch run in sequence, and each can take minutes.
        if (!isFirst) await caller.reauthorize()
        isFirst = false
        return invokeOperation(deps, operation, args, { workspaceId, caller })
      },
    }
  }

  async function respond(workspaceId: string, caller: Caller, isEndless: boolean, message?: unknown) {
    if (!settings.enabled)
      throw new WbError('not_found', 'this runtime does not serve tools over MCP', {
        hint: 'An operator can set mcp.enabled in the configuration.',
      })
    await requireWorkspace(deps.rows, workspaceId)
    requireTokenScope(message, { workspaceId, caller }, deps.requestScope)
    const serverOptions = serverOptionsFor(workspaceId, caller)
    return {
      protocol: {
        respond: (request: Request) => serveMcpRequest(serverOptions, request, message),
        isEndless,
      },
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
     * Returns the names of the tools that a client receives in response to `tools/list`.
     *
     * @throws Error  the response contains no list of tools
     */
    listTools: (workspaceId: string, caller: Caller) => listToolNames(serverOptionsFor(workspaceId, caller)),
  }
}

async function listToolNames(serverOptions: McpRequestOptions): Promise<string[]> {
  const headers = { accept: 'application/json, text/event-stream', 'content-type': 'application/json' }
  const request = new Request('http://localhost/mcp', { method: 'POST', headers })
  const response = await serveMcpRequest(serverOptions, request, {
    jsonrpc: '2.0',
    id: 1,
    method: 'tools/list',
  })
  const [, data] = /^data: (.+)$/m.exec(await response.text()) ?? []
  const { result } = JSON.parse(data ?? '{}') as { result?: { tools: { name: string }[] } }
  if (!result) throw new Error('the response lists no tools')
  return result.tools.map(({ name }) => name)
}
