import { noPrincipal } from '../../src/access/row-access.ts'
import { type AuthContext, anonymousContext, verifiedContext } from '../../src/access/subject.ts'
import type { Tool, ToolContext, ToolPassage, ToolResult } from '../../src/agents/tools/tool.ts'
import { audit } from '../../src/contract/audit.ts'
import type { AuditRecord } from '../../src/contract/audit-record.ts'
import type { Scope } from '../../src/contract/scopes.ts'
import type { RuntimeOverrides } from '../../src/runtime.ts'
import { openAccess } from './open-access.ts'
import { makeWorkspace } from './resources.ts'
import { open, type TestRuntime, type TestRuntimeOptions } from './runtime.ts'

type AgentTools = Parameters<NonNullable<RuntimeOverrides['tools']>>[0]

/** IDs of the built-in tools, in the order of lists. */
export const builtInToolIds = [
  'list_kbs',
  'list_documents',
  'count_documents',
  'summarize_kb',
  'search_kb',
  'get_document',
  'list_chunks',
]

/** Returns the context of a key with the given scopes. */
export function keyWith(...scopes: Scope[]): AuthContext {
  return verifiedContext('apiKey', {
    id: 'a key',
    label: null,
    type: 'apiKey',
    workspaceScopes: null,
    scopes,
    role: null,
    principalId: null,
    keyLifetimeMaxMs: null,
  })
}

export interface ToolCallOptions {
  /** Anonymous with authentication disabled by default. */
  readonly auth?: AuthContext
  /** Tools of the agent; an empty list selects every built-in tool. */
  readonly toolIds?: readonly string[]
  readonly knowledgeBaseIds?: readonly string[]
  readonly passageTokens?: number
  readonly signal?: AbortSignal
}

export interface ToolSetup extends AgentTools {
  readonly wb: TestRuntime
  readonly workspaceId: string
  /** Cited passages, starting with number 1. */
  readonly cited: readonly ToolPassage[]
  context(calling?: ToolCallOptions): ToolContext
  toolsOf(toolIds?: readonly string[]): Promise<readonly Tool[]>
  /** Calls a tool of a new turn, including the checks of the tool gate. */
  run(name: string, args?: object | string, calling?: ToolCallOptions): Promise<ToolResult>
  /** Audit records of tool calls, newest first. */
  auditRecords(): Promise<AuditRecord[]>
}

/** Opens a runtime and creates a workspace, with everything that a turn needs to call tools. */
export async function setUpTools(options: TestRuntimeOptions = {}): Promise<ToolSetup> {
  let opened!: AgentTools
  const wb = await open({
    ...options,
    tools: tools => {
      opened = tools
    },
  })
  const { workspaceId } = await makeWorkspace(wb)
  const cited: ToolPassage[] = []
  const cite = (passage: ToolPassage) => {
    const known = cited.findIndex(({ chunkId }) => chunkId === passage.chunkId)
    return known >= 0 ? known + 1 : cited.push(passage)
  }
  const { signal: never } = new AbortController()
  const rowAccess = (id: string) => openAccess(noPrincipal, id)
  const context = ({
    auth = anonymousContext('disabled'),
    knowledgeBaseIds = [],
    passageTokens = 8_000,
    signal = never,
  }: ToolCallOptions = {}) => ({
    workspaceId,
    caller: { auth, client: '', reauthorize: async () => {}, rowAccess, signal, requestId: 'request-1' },
    knowledgeBaseIds,
    passageTokens,
    signal,
    cite,
    addSource: () => {},
  })
  const toolsOf = async (toolIds: readonly string[] = [], auth = anonymousContext('disabled')) =>
    (await opened.toolbox.forAgent({ workspaceId, toolIds: [...toolIds] }, auth, never)).tools
  return {
    ...opened,
    wb,
    workspaceId,
    cited,
    context,
    toolsOf,
    async run(name, args = {}, calling = {}) {
      const tools = await toolsOf(calling.toolIds ?? [name], calling.auth)
      const text = typeof args === 'string' ? args : JSON.stringify(args)
      const turn = { agentId: 'agent-1', context: context(calling) }
      const tool = tools.find(({ id }) => id === name)
      return opened.gate.run({ id: 'call-1', name, arguments: text }, tool, turn)
    },
    async auditRecords() {
      const query = { action: 'tool.invoke' as const }
      return (await wb.call(audit.list, { params: { workspaceId }, query })).items
    },
  }
}
