import { broken } from '../../client/retries.ts'
import { isFree, Unreachable } from '../../client/unreachable.ts'
import { WbError } from '../../contract/errors.ts'
import { allowanceFor } from './allowed.ts'
import type { Request } from './message.ts'

/** A runtime that restarts is looked for again for about three seconds. */
export const attemptsMax = 6
const firstPauseMs = 100

/** Pause before the next attempt, in milliseconds. @param attempt  attempts so far, from 1 */
export function pauseMs(attempt: number): number {
  return firstPauseMs * 2 ** (attempt - 1)
}

/** An answer that ended before the result came. */
export class BrokenOff extends Unreachable {
  constructor() {
    super('the runtime closed the connection before it answered', 'Send the request again.')
  }
}

/** A request that may have been carried out, although no answer came. */
export class Uncertain extends Unreachable {
  constructor(tool: string, cause: unknown) {
    super(
      `the connection to the runtime broke during ${tool}; the call may have been carried out and was not repeated`,
      'Check what the call was to change before you repeat it.',
      { cause },
    )
  }
}

/**
 * Returns the error to report, or undefined if the request can be sent again: it never arrived, or it only reads.
 */
export function fatal(error: unknown, request: Request): unknown {
  if (hasNotArrived(error)) return undefined
  if (!isBroken(error)) return error
  return isRead(request) ? undefined : new Uncertain(String(request.params?.name), error)
}

function hasNotArrived(error: unknown): boolean {
  if (error instanceof WbError) return error.code === 'draining'
  return error instanceof Unreachable && isFree(error)
}

function isBroken(error: unknown): boolean {
  if (error instanceof BrokenOff) return true
  if (!(error instanceof Unreachable) || !(error.cause instanceof Error)) return false
  return 'code' in error.cause && broken.has(String(error.cause.code))
}

/** Everything but a tool that needs an allowance changes nothing. */
function isRead({ method, params }: Request): boolean {
  return method !== 'tools/call' || allowanceFor(String(params?.name)) === null
}
