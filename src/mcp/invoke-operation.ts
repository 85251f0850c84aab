import type { AuditTrail } from '../access/audit-trail.ts'
import { decideAccess } from '../access/authorize.ts'
import type { Caller } from '../access/caller.ts'
import { subjectName } from '../access/subject.ts'
import type { TrafficEntry } from '../contract/connect.ts'
import { type ErrorCode, type ErrorEnvelope, WbError } from '../contract/errors.ts'
import { validate } from '../http/validate.ts'
import { RouteCaller } from './route-caller.ts'
import type { FacadeOperation, FacadeResult } from './tool.ts'

export interface InvokeDependencies {
  readonly audit: Pick<AuditTrail, 'note'>
  readonly traffic: { add(workspaceId: string, subject: string | null, call: Omit<TrafficEntry, 'at'>): void }
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
  /** Why the call was denied or aborted. Absent for a failure, whose message can contain text of an answer or an ID. */
  readonly reason?: string
  readonly requiredScope?: string | undefined
}

/**
 * Runs an operation if the caller is authorized and the arguments are valid. Records the call or the denial
 * in the audit trail, but not invalid arguments of an authorized caller. The record of a failure contains its code, and no
 * text of the result.
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
    return { ...result, outcome: result.isError ? 'failure' : 'success' }
  } catch (error) {
    if (caller.signal.aborted) {
      const reason = 'the caller disconnected'
      return { outcome: 'failure', payload: reason, isError: true, reason }
    }
    const { code, message } = failureOf(deps, error, caller.requestId)
    return { outcome: 'failure', payload: message, isError: true, code }
  }
}

/** Returns the code and message of a failure. Messages of drivers are not shown to the caller. */
function failureOf({ reportFailure }: InvokeDependencies, error: unknown, requestId: string) {
  const { code, message } = reportFailure(error, requestId).envelope.error
  const isKnown = code !== 'internal_error'
  return { code: code as ErrorCode, message: isKnown ? message : `${message} (request ${requestId})` }
}

function record(
  { audit, traffic }: InvokeDependencies,
  { name }: FacadeOperation,
  { workspaceId, caller }: CallOrigin,
  { outcome, code, reason = code, requiredScope }: RecordedResult,
): void {
  const details = { toolName: name, ...(reason && { reason }), ...(requiredScope && { requiredScope }) }
  audit.note(caller, { action: 'mcp.invoke', outcome, workspaceId, details })
  const { subject } = caller.auth
  traffic.add(workspaceId, subjectName(caller.auth), {
    toolName: name,
    outcome,
    subjectType: subject?.type ?? 'anonymous',
    subjectLabel: subject?.label ?? null,
    reason: reason ?? null,
  })
}
