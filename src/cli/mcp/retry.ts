import { brokenConnectionCodes } from '../../client/node/retry-options.ts'
import { isRefusedConnection, Unreachable } from '../../client/unreachable.ts'
import { WbError } from '../../contract/errors.ts'
import { requiredPermission } from './mcp-permissions.ts'
import type { RpcRequest } from './message.ts'

/** Maximum number of attempts to reach a runtime that is restarting. The pauses add up to about three seconds. */
export const attemptsMax = 6
const firstPauseMs = 100

/** Returns the pause before the next attempt. @param attempt  number of attempts so far, from 1 */
export function pauseMs(attempt: number): number {
  return firstPauseMs * 2 ** (attempt - 1)
}

/** A response that ended before it contained a result. */
export class IncompleteResponse extends Unreachable {
  constructor() {
    super('the runtime closed the connection before it sent the result', 'Send the request again.')
  }
}

/** A request that may have been carried out, although no result arrived. */
export class UncertainOutcome extends Unreachable {
  constructor(tool: string, cause: unknown) {
    super(
      `the connection to the runtime was lost during ${tool}; the call may have been carried out and was not repeated`,
      'Check whether the change was made before you repeat the call.',
      { cause },
    )
  }
}

/**
 * Returns the error to report. Returns undefined if it is safe to send the request again, because the runtime did not
 * process it or because the request changes nothing.
 */
export function errorToReport(error: unknown, request: RpcRequest): unknown {
  if (wasNotProcessed(error)) return undefined
  if (!isBrokenConnection(error)) return error
  return isReadOnly(request) ? undefined : new UncertainOutcome(String(request.params?.name), error)
}

/**
 * Returns true if the runtime did not process the request: it was shutting down (`draining`), or no connection
 * was established.
 */
function wasNotProcessed(error: unknown): boolean {
  if (error instanceof WbError) return error.code === 'draining'
  return error instanceof Unreachable && isRefusedConnection(error)
}

function isBrokenConnection(error: unknown): boolean {
  if (error instanceof IncompleteResponse) return true
  if (!(error instanceof Unreachable) || !(error.cause instanceof Error)) return false
  return 'code' in error.cause && brokenConnectionCodes.has(String(error.cause.code))
}

/** Returns true for a request that changes nothing: every request except calls of tools that need a permission. */
function isReadOnly({ method, params }: RpcRequest): boolean {
  return method !== 'tools/call' || requiredPermission(String(params?.name)) === null
}
