import { brokenConnectionCodes } from '../../client/node/retry-options.ts'
import { isRefusedConnection, Unreachable } from '../../client/unreachable.ts'
import { WbError } from '../../contract/errors.ts'
import { requiredAllowance } from './allowances.ts'
import type { RpcRequest } from './message.ts'

/** Maximum number of attempts, about three seconds in total, to reach a runtime that restarts. */
export const attemptsMax = 6
const firstPauseMs = 100

/** Pause before the next attempt, in milliseconds. @param attempt  attempts so far, from 1 */
export function pauseMs(attempt: number): number {
  return firstPauseMs * 2 ** (attempt - 1)
}

/** A response that ended before its result. */
export class IncompleteResponse extends Unreachable {
  constructor() {
    super('the runtime closed the connection before it answered', 'Send the request again.')
  }
}

/** A request without a response, which may have been carried out. */
export class UncertainOutcome extends Unreachable {
  constructor(tool: string, cause: unknown) {
    super(
      `the connection to the runtime broke during ${tool}; the call may have been carried out and was not repeated`,
      'Check whether the change was made before you repeat the call.',
      { cause },
    )
  }
}

/**
 * Returns the error to report, or undefined if the request can be sent again: it never arrived, or it only reads.
 */
export function errorToReport(error: unknown, request: RpcRequest): unknown {
  if (didNotArrive(error)) return undefined
  if (!isBrokenConnection(error)) return error
  return isReadOnly(request) ? undefined : new UncertainOutcome(String(request.params?.name), error)
}

function didNotArrive(error: unknown): boolean {
  if (error instanceof WbError) return error.code === 'draining'
  return error instanceof Unreachable && isRefusedConnection(error)
}

function isBrokenConnection(error: unknown): boolean {
  if (error instanceof IncompleteResponse) return true
  if (!(error instanceof Unreachable) || !(error.cause instanceof Error)) return false
  return 'code' in error.cause && brokenConnectionCodes.has(String(error.cause.code))
}

/** Returns true for a request that changes nothing: all but calls of tools that `--allow` has to name. */
function isReadOnly({ method, params }: RpcRequest): boolean {
  return method !== 'tools/call' || requiredAllowance(String(params?.name)) === null
}
