import { Unreachable } from '../../client/unreachable.ts'
import { WbError } from '../../contract/errors.ts'

/** Codes of a runtime that is stopping or restarting. */
const temporaryCodes: readonly string[] = ['draining', 'control_plane_unavailable']

/** Returns true if the same request can succeed when the runtime is back. */
export function isUnavailable(error: unknown): boolean {
  return error instanceof Unreachable || (error instanceof WbError && temporaryCodes.includes(error.code))
}
