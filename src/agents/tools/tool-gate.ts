import type { AuditTrail } from '../../access/audit-trail.ts'
import { decideAccess } from '../../access/authorize.ts'
import type { Clock } from '../../base/clock.ts'
import { TimedOut, withTimeout } from '../../base/deadline.ts'
import { describeJsonExcess } from '../../base/describe-json-excess.ts'
import type { Log } from '../../base/log.ts'
import type { ToolCall } from '../../contract/chat.ts'
import { externalToolAccess } from '../../contract/tool-access.ts'
import type { Tool, ToolContext, ToolResult } from './tool.ts'
import { failureResult, previewText, ToolError, truncateResult } from './tool-result.ts'

/**
 * Maximum time for a call, in milliseconds.
 *
 * @see docs/agents.md#which-tools-may-run
 */
const callTimeoutMs = 30_000
/** Maximum length of a tool name in a denial message for the model. */
const nameCharsMax = 200

/** Properties that all calls of a turn share. */
export interface ToolTurn {
  readonly agentId: string
  readonly context: ToolContext
}

export interface ToolGateDependencies {
  readonly clock: Clock
  readonly log: Log
  readonly audit: Pick<AuditTrail, 'note'>
}

/**
 * Runs the tool calls of models, with a time limit. Tools of MCP servers require the scope `tools:invoke`. `TurnTools`
 * checks the agent's rules and the approvals before it calls this class.
 *
 * Audits all calls, except successful calls of built-in tools, because these only read.
 *
 * @see docs/requirements.md#S5.5-28, docs/agents.md#which-tools-may-run
 */
export class ToolGate {
  constructor(private readonly deps: ToolGateDependencies) {}

  /**
   * Runs one call. Failures and denials are also returned as results for the model.
   *
   * @param tool  tool of the call; undefined if the agent has no tool with that name
   */
  async run(call: ToolCall, tool: Tool | undefined, turn: ToolTurn): Promise<ToolResult> {
    const result = tool ? await this.#runIfPermitted(tool, call, turn) : unknownToolResult(call)
    const truncatedResult = { ...result, content: truncateResult(result.content) }
    if (tool?.source !== 'builtin' || truncatedResult.outcome !== 'success')
      this.#audit(call, tool, turn, truncatedResult)
    return truncatedResult
  }

  /** Audits a call that a rule of the agent or an approver denied, and returns its result. */
  deny(call: ToolCall, tool: Tool, turn: ToolTurn, reason: string): ToolResult {
    const result = deniedResult(call, reason)
    this.#audit(call, tool, turn, result)
    return result
  }

  async #runIfPermitted(tool: Tool, call: ToolCall, turn: ToolTurn): Promise<ToolResult> {
    const { caller, workspaceId } = turn.context
    const accessRequest = { rule: externalToolAccess, workspaceId }
    if (tool.isExternal && !decideAccess(accessRequest, caller).allow)
      return deniedResult(call, 'missing tools:invoke scope')
    // The model can have taken minutes. A revocation in the meantime must take effect.
    await caller.reauthorize()
    try {
      return await this.#callWithTimeout(tool, argumentsOf(call), turn)
    } catch (error) {
      return this.#failureOf(tool, error, turn)
    }
  }

  #callWithTimeout(tool: Tool, args: Record<string, unknown>, { context }: ToolTurn): Promise<ToolResult> {
    const work = (signal: AbortSignal) => tool.call(args, { ...context, signal })
    return withTimeout(this.deps.clock, callTimeoutMs, work, context.signal)
  }

  #failureOf(tool: Tool, error: unknown, { agentId, context }: ToolTurn): ToolResult {
    if (error instanceof ToolError) return failureResult(error.message)
    if (error instanceof TimedOut)
      return failureResult(`the tool returned no result within ${callTimeoutMs / 1_000} s`)
    if (context.signal.aborted) return failureResult('the request was cancelled')
    const { workspaceId } = context
    this.deps.log.error({ workspaceId, agentId, tool: tool.id, error }, 'a tool failed')
    return failureResult('the tool failed')
  }

  #audit(call: ToolCall, tool: Tool | undefined, { agentId, context }: ToolTurn, result: ToolResult): void {
    const { outcome, reason } = result
    this.deps.audit.note(context.caller, {
      action: 'tool.invoke',
      outcome,
      workspaceId: context.workspaceId,
      details: {
        agentId,
        toolName: call.name,
        ...(tool && { source: tool.source }),
        ...(tool?.serverId && { mcpServerId: tool.serverId }),
        ...(reason && { reason }),
      },
    })
  }
}

function unknownToolResult({ name }: ToolCall): ToolResult {
  return {
    content: `Error: the tool ${previewText(name, nameCharsMax)} is not available to this agent.`,
    outcome: 'denied',
    reason: 'the tool is not available to the agent',
  }
}

function deniedResult({ name }: ToolCall, reason: string): ToolResult {
  return {
    content: `Error: the tool ${previewText(name, nameCharsMax)} is not permitted: ${reason}.`,
    outcome: 'denied',
    reason,
  }
}

/** @throws ToolError  the arguments are not a JSON object, are nested too deeply, or have too many elements */
function argumentsOf({ arguments: text }: ToolCall): Record<string, unknown> {
  if (text.trim() === '') return {}
  const excess = describeJsonExcess(Buffer.from(text))
  if (excess) throw new ToolError(`the arguments are ${excess}`)
  const value = parseArguments(text)
  if (typeof value !== 'object' || value === null || Array.isArray(value))
    throw new ToolError('the arguments are not a JSON object')
  return value as Record<string, unknown>
}

function parseArguments(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new ToolError('the arguments are not JSON')
  }
}
