import type { Log } from '../../base/log.ts'
import type { Agent, ToolPermission } from '../../contract/agents.ts'
import type { Approval, Citation, ToolCall } from '../../contract/chat.ts'
import type { ToolSpec } from '../../models/chat/completion.ts'
import type { ConversationRow, MessageSource } from '../../storage/tables.ts'
import { narrowTools } from '../tools/narrow-tools.ts'
import { permissionFor } from '../tools/permission.ts'
import type { Tool, ToolContext, ToolPassage, ToolResult } from '../tools/tool.ts'
import type { ToolGate } from '../tools/tool-gate.ts'
import { toToolSpec } from '../tools/tool-spec.ts'
import { type ApprovalRequest, type Approvals, approvedTools } from './approvals.ts'
import type { Citations } from './citations.ts'
import { sourcesOf } from './sources.ts'

/** Tools whose passages an answer is based on. @see docs/agents.md#citations */
const groundingTools: ReadonlySet<string> = new Set(['search_kb'])
/** Tools whose passages can be cited. */
const citingTools: ReadonlySet<string> = new Set(['search_kb', 'list_chunks'])

/** Dependencies and settings for the tools of a turn. */
export interface TurnToolsOptions {
  readonly gate: ToolGate
  readonly approvals: Approvals
  readonly agent: Agent
  readonly conversation: ConversationRow
  readonly tools: readonly Tool[]
  /** Question of the user. Determines which tools the model receives if the agent has too many. */
  readonly question: string
  readonly log: Log
  readonly context: Omit<ToolContext, 'signal' | 'cite' | 'addSource'>
  readonly citations: Citations
  /** True if the sender can approve tool calls. */
  readonly canApprove: boolean
  /** True if the messages to the model can derive from text of documents or tools. */
  readonly hasReadUntrusted: boolean
}

/** Result of a tool call, with the passages that it found. */
export interface TurnToolResult extends ToolResult {
  readonly passages: readonly Citation[]
  /** Passages that the answer is based on. */
  readonly groundingPassages: readonly ToolPassage[]
  /** Documents and records from which the result is derived. */
  readonly sources: readonly MessageSource[]
  /** True if the result has text of a document, attachment or other server that is in no grounding passage. */
  readonly hasOtherText: boolean
}

/** The tools of one turn. Describes them to the model, checks permissions, and runs calls. */
export class TurnTools {
  readonly #options: TurnToolsOptions
  readonly #tools: ReadonlyMap<string, Tool>
  #hasReadUntrusted: boolean
  /** Hashes of the tools that are approved in the conversation, by tool ID. */
  #approved: Readonly<Record<string, string>>
  readonly specs: readonly ToolSpec[]
  /** Number of tools of the agent that the model does not receive. */
  readonly omittedCount: number

  constructor(options: TurnToolsOptions) {
    this.#options = options
    this.#hasReadUntrusted = options.hasReadUntrusted
    this.#approved = approvedTools(options.conversation, options.context.caller.auth)
    this.#tools = new Map(options.tools.map(tool => [tool.id, tool]))
    const selected = narrowTools(options.tools, options.question)
    this.specs = selected.map(toToolSpec)
    this.omittedCount = options.tools.length - selected.length
    if (this.omittedCount > 0) this.#logOmittedTools()
  }

  #logOmittedTools(): void {
    const { log, agent, tools } = this.#options
    const logFields = {
      workspaceId: agent.workspaceId,
      agentId: agent.agentId,
      tools: tools.length,
      leftOut: this.omittedCount,
    }
    log.warn(
      logFields,
      'the agent has more tools than a model accepts; the model received those that match the question best',
    )
  }

  /** True if the messages to the model, including results of this turn, can derive from text of documents or tools. */
  get hasReadUntrusted(): boolean {
    return this.#hasReadUntrusted
  }

  /** True if the model has a search tool. */
  get canSearch(): boolean {
    return this.specs.some(({ name }) => groundingTools.has(name))
  }

  /** True if the model has a tool whose passages can be cited. */
  get canCite(): boolean {
    return this.specs.some(({ name }) => citingTools.has(name))
  }

  /**
   * Creates an approval request for a call. Returns undefined if the call needs no approval, or if the sender cannot
   * approve calls.
   */
  requestApproval(call: ToolCall, signal: AbortSignal): ApprovalRequest | undefined {
    const { canApprove, approvals, conversation, context } = this.#options
    const tool = this.#tools.get(call.name)
    if (!tool || !canApprove || this.#permissionOf(tool) !== 'ask') return undefined
    return approvals.request({ conversation, tool }, context.caller.auth, signal)
  }

  /**
   * Runs a call, or returns a result with the reason why it may not run.
   *
   * @param decision  decision of the sender, if it was requested
   */
  async run(
    call: ToolCall,
    decision: Approval['decision'] | undefined,
    signal: AbortSignal,
  ): Promise<TurnToolResult> {
    const { gate, agent, context, citations } = this.#options
    const tool = this.#tools.get(call.name)
    const passages: Citation[] = []
    const sources: MessageSource[] = []
    const cite: ToolContext['cite'] = (passage, text) => {
      const number = citations.numberOf(passage, text)
      passages.push({ ...passage, number })
      sources.push(...sourcesOf(passage))
      return number
    }
    const addSource: ToolContext['addSource'] = ({ knowledgeBaseId, documentId }) =>
      void sources.push([knowledgeBaseId, documentId, null])
    const turn = { agentId: agent.agentId, context: { ...context, signal, cite, addSource } }
    if (tool && decision === 'always') this.#approved = { ...this.#approved, [tool.id]: tool.hash }
    const denialReason = tool && this.#denialReasonFor(tool, decision)
    const result = denialReason ? gate.deny(call, tool, turn, denialReason) : await gate.run(call, tool, turn)
    if (tool?.readsUntrusted && !denialReason) this.#hasReadUntrusted = true
    const groundingPassages = groundingTools.has(call.name) ? passages : []
    const readsOther = tool?.source !== 'builtin' || (!groundingTools.has(call.name) && tool.readsUntrusted)
    const hasOtherText = tool !== undefined && readsOther && !denialReason
    return { ...result, passages, groundingPassages, sources, hasOtherText }
  }

  #denialReasonFor(tool: Tool, decision: Approval['decision'] | undefined): string | undefined {
    const permission = this.#permissionOf(tool)
    if (permission === 'deny') return 'the rules of the agent deny it'
    if (permission === 'allow' || decision === 'once' || decision === 'always') return undefined
    return decision === 'never'
      ? 'the user did not approve it'
      : 'it needs an approval, which this client cannot request'
  }

  /**
   * Returns the permission of a tool. If no rule of the agent matches, a tool that is not built in requires approval
   * after the agent has read text of documents or tools.
   */
  #permissionOf(tool: Tool): ToolPermission {
    const { agent } = this.#options
    const fallback = this.#hasReadUntrusted && tool.source !== 'builtin' ? 'ask' : 'allow'
    const permission = permissionFor(agent.toolRules ?? {}, tool, this.#hasReadUntrusted, fallback)
    const isApproved = this.#approved[tool.id] === tool.hash
    return permission === 'ask' && isApproved ? 'allow' : permission
  }
}
