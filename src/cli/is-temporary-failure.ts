import { Unreachable } from '../client/unreachable.ts'
import { WbError } from '../contract/errors.ts'

/** Returns true if the same request can succeed later. */
export function isTemporaryFailure(error: unknown): boolean {
  if (error instanceof WbError) return error.status === 429 || error.status >= 500
  return error instanceof Unreachable
}
