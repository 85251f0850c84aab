import type { AuditTrail } from '../access/audit-trail.ts'
import { decideAccess } from '../access/authorize.ts'
import type { Caller } from '../access/caller.ts'
import type { TrafficEntry } from '../contract/connect.ts'
import { type ErrorCode, type ErrorEnvelope, WbError } from '../contract/errors.ts'
import { validate } from '../http/validate.ts'
import { RouteCaller } from './route-caller.ts'
import type { FacadeOperation, FacadeResult } from './tool.ts'

export interface InvokeDependencies {
  readonly audit: Pick<AuditTrail, 'note'>
  readonly traffic: { add(workspaceId: string, call: Omit<TrafficEntry, 'at'>): void }
  /** Logs a failure, and returns the error to send to the caller. */
  readonly reportFailure: (thrown: unknown, requestId: string) => { readonly envelope: ErrorEnvelope }
}

type OperationInput = Parameters<FacadeOperation['run']>[0]

interface CallOrigin {
  readonly workspaceId: string
  readonly caller: Caller
}

/** Result of a call, with the facts to record about the call. */
interface RecordedResult extends FacadeResult {
  readonly outcome: TrafficEntry['outcome']
  /** Never text of the result, because others can read it. */
  readonly reason?: string | undefined
  readonly requiredScope?: string | undefined
}

/**
 * Runs an operation if the caller is authorized and the arguments are valid. Records the call or the denial
 * in the audit trail, but not invalid arguments of an authorized caller.
 *
 * @see docs/requirements.md#S5.5-25
 */
export async function invokeOperation(
  deps: InvokeDependencies,
  operation: FacadeOperation,
  args: unknown,
  origin: CallOrigin,
): Promise<FacadeResult> {
  const denied = denialOf(operation, origin)
  if (denied) {
    record(deps, operation, origin, denied)
    return denied
  }
  let input: OperationInput
  try {
    input = validate(operation.input, args)
  } catch (error) {
    if (!(error instanceof WbError)) throw error
    const payload = `MCP error -32602: Invalid arguments for tool ${operation.name}: ${error.message}`
    return { payload, isError: true, code: error.code }
  }
  const result = await runOperation(deps, operation, input, origin)
  record(deps, operation, origin, result)
  return result
}

/** Returns the result for a caller that lacks the required scope; undefined if the call is allowed. */
function denialOf(
  { access }: FacadeOperation,
  { workspaceId, caller }: CallOrigin,
): RecordedResult | undefined {
  const decision = decideAccess({ rule: access, workspaceId }, caller)
  if (decision.allow) return undefined
  const { requiredScope, message } = decision
  const payload = {
    outcome: 'denied',
    code: 'scope_required',
    required: requiredScope,
    subjectScopes: caller.auth.subject?.scopes ?? [],
    message,
  }
  return { outcome: 'denied', payload, isError: true, code: 'forbidden', reason: message, requiredScope }
}

async function runOperation(
  deps: InvokeDependencies,
  operation: FacadeOperation,
  input: OperationInput,
  { workspaceId, caller }: CallOrigin,
): Promise<RecordedResult> {
  try {
    const routeCaller = new RouteCaller(workspaceId, caller, deps.audit)
    const result = await operation.run(input, { workspaceId, caller, routeCaller })
    if (!result.isError) return { ...result, outcome: 'success' }
    return { ...result, outcome: 'failure', reason: result.code ?? outcomeOf(result.payload) }
  } catch (error) {
    const { code, message } = caller.signal.aborted
      ? { code: undefined, message: 'the caller disconnected' }
      : failureOf(deps, error, caller.requestId)
    return { outcome: 'failure', payload: message, isError: true, code, reason: code ?? message }
  }
}

/** Returns the code and message of a failure. Messages of drivers are not shown to the caller. */
function failureOf({ reportFailure }: InvokeDependencies, error: unknown, requestId: string) {
  const { code, message } = reportFailure(error, requestId).envelope.error
  const isKnown = code !== 'internal_error'
  return { code: code as ErrorCode, message: isKnown ? message : `${message} (request ${requestId})` }
}

/** Returns the outcome that an operation with its own outcomes reports. */
function outcomeOf(payload: unknown): string | undefined {
  const { outcome } = payload as { outcome?: unknown }
  return typeof outcome === 'string' ? outcome : undefined
}

function record(
  { audit, traffic }: InvokeDependencies,
  { name }: FacadeOperation,
  { workspaceId, caller }: CallOrigin,
  { outcome, reason, requiredScope }: RecordedResult,
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
