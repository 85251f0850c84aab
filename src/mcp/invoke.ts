import type { AuditTrail } from '../access/audit.ts'
import type { Caller } from '../access/caller.ts'
import { decide } from '../access/gate.ts'
import type { TrafficEntry } from '../contract/connect.ts'
import { type ErrorEnvelope, WbError } from '../contract/errors.ts'
import { mcpToolAccess } from '../contract/tool-access.ts'
import { validate } from '../http/validate.ts'
import { Rest } from './rest.ts'
import type { FacadeResult, FacadeTool } from './tool.ts'

export interface InvokeParts {
  readonly audit: Pick<AuditTrail, 'note'>
  readonly traffic: { add(workspaceId: string, call: Omit<TrafficEntry, 'at'>): void }
  /** What the wire may say of whatever was thrown; the log is told the rest. */
  readonly tellFailure: (thrown: unknown, requestId: string) => { readonly envelope: ErrorEnvelope }
}

type Input = Parameters<FacadeTool['run']>[0]

interface Where {
  readonly workspaceId: string
  readonly caller: Caller
}

/** How a call ended: what its caller is told, and what is on record. */
interface Ending extends FacadeResult {
  readonly outcome: TrafficEntry['outcome']
  readonly reason?: string | undefined
  readonly requiredScope?: string | undefined
}

/**
 * Calls a tool if the caller is authorized and the arguments are valid. Records the call or the denial in the audit trail,
 * but not invalid arguments of an authorized caller.
 *
 * @see docs/requirements.md#S5.5-25
 */
export async function invoke(
  parts: InvokeParts,
  tool: FacadeTool,
  sent: unknown,
  where: Where,
): Promise<FacadeResult> {
  const denied = refused(tool, where)
  if (denied) {
    record(parts, tool, where, denied)
    return denied
  }
  let input: Input
  try {
    input = validate(tool.input, sent)
  } catch (error) {
    if (!(error instanceof WbError)) throw error
    const payload = `MCP error -32602: Invalid arguments for tool ${tool.name}: ${error.message}`
    return { payload, isError: true }
  }
  const ending = await run(parts, tool, input, where)
  record(parts, tool, where, ending)
  return ending
}

/** The ending of a call that the caller lacks the scope for. Nothing is done. */
function refused({ name }: FacadeTool, { workspaceId, caller }: Where): Ending | undefined {
  const decision = decide({ rule: mcpToolAccess[name], workspaceId }, caller)
  if (decision.allow) return undefined
  const { requiredScope, message } = decision
  const payload = {
    outcome: 'denied',
    code: 'scope_required',
    required: requiredScope,
    subjectScopes: caller.auth.subject?.scopes ?? [],
    message,
  }
  return { outcome: 'denied', payload, isError: true, reason: message, requiredScope }
}

async function run(
  parts: InvokeParts,
  tool: FacadeTool,
  input: Input,
  { workspaceId, caller }: Where,
): Promise<Ending> {
  try {
    const rest = new Rest(workspaceId, caller, parts.audit)
    const { payload, isError = false } = await tool.run(input, { workspaceId, caller, rest })
    return isError
      ? { outcome: 'failure', payload, isError, reason: reasonOf(payload) }
      : { outcome: 'success', payload }
  } catch (error) {
    const message = caller.signal.aborted ? 'the caller went away' : told(parts, error, caller.requestId)
    return { outcome: 'failure', payload: message, isError: true, reason: message }
  }
}

/** What a driver says never reaches the wire. */
function told({ tellFailure }: InvokeParts, error: unknown, requestId: string): string {
  const { code, message } = tellFailure(error, requestId).envelope.error
  return code === 'internal_error' ? `${message} (request ${requestId})` : message
}

function reasonOf(payload: unknown): string | undefined {
  if (typeof payload === 'string') return payload
  const { message } = payload as { message?: unknown }
  return typeof message === 'string' ? message : undefined
}

function record(
  { audit, traffic }: InvokeParts,
  { name }: FacadeTool,
  { workspaceId, caller }: Where,
  { outcome, reason, requiredScope }: Ending,
): void {
  const details = { toolName: name, ...(reason && { reason }), ...(requiredScope && { requiredScope }) }
  audit.note(caller, { action: 'mcp.invoke', outcome, workspaceId, details })
  const { subject } = caller.auth
  traffic.add(workspaceId, {
    toolName: name,
    outcome,
    subjectType: subject?.type ?? 'anonymous',
    subjectLabel: subject?.label ?? null,
    reason: reason ?? null,
  })
}
