import { Unreachable } from '../../client/unreachable.ts'
import { WbError } from '../../contract/errors.ts'

/** Error codes of a runtime that is stopping or restarting. */
const temporaryCodes: readonly string[] = ['draining', 'control_plane_unavailable']

/** Returns true if the same request can succeed once the runtime is available again. */
export function isUnavailable(error: unknown): boolean {
  return error instanceof Unreachable || (error instanceof WbError && temporaryCodes.includes(error.code))
}
