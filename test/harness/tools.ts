import { fullVisibility } from '../../src/access/full-visibility.ts'
import { type AuthContext, anonymousContext, verifiedContext } from '../../src/access/subject.ts'
import type { Tool, ToolContext, ToolPassage, ToolResult } from '../../src/agents/tools/tool.ts'
import { audit } from '../../src/contract/audit.ts'
import type { AuditRecord } from '../../src/contract/audit-record.ts'
import type { Scope } from '../../src/contract/scopes.ts'
import type { RuntimeOverrides } from '../../src/runtime.ts'
import { makeWorkspace } from './place.ts'
import { type Opened, type Options, open } from './runtime.ts'

type AgentTools = Parameters<NonNullable<RuntimeOverrides['tools']>>[0]

/** A key with some scopes. */
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

export interface Calling {
  /** Nobody whom anybody asked when left out. */
  readonly auth?: AuthContext
  /** Of the agent; empty is every built-in tool. */
  readonly toolIds?: readonly string[]
  readonly knowledgeBaseIds?: readonly string[]
  readonly passageTokens?: number
  readonly signal?: AbortSignal
}

export interface ToolStage extends AgentTools {
  readonly wb: Opened
  readonly workspaceId: string
  /** Passages that were cited, the first as 1. */
  readonly cited: readonly ToolPassage[]
  context(calling?: Calling): ToolContext
  toolsOf(toolIds?: readonly string[]): Promise<readonly Tool[]>
  /** Have the tool of a fresh turn called through the gate. */
  run(name: string, args?: object | string, calling?: Calling): Promise<ToolResult>
  /** What the trail holds of calls of tools, the newest first. */
  audited(): Promise<AuditRecord[]>
}

/** A runtime, a workspace in it, and what a turn there calls tools with. */
export async function toolStage(options: Options = {}): Promise<ToolStage> {
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
  const context = ({
    auth = anonymousContext('disabled'),
    knowledgeBaseIds = [],
    passageTokens = 8_000,
    signal = never,
  }: Calling = {}) => ({
    workspaceId,
    caller: { auth, visibility: fullVisibility(), signal, requestId: 'request-1' },
    knowledgeBaseIds,
    passageTokens,
    signal,
    cite,
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
    async audited() {
      const query = { action: 'tool.invoke' as const }
      return (await wb.call(audit.list, { params: { workspaceId }, query })).items
    },
  }
}
