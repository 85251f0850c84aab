import { Unreachable } from '../../client/unreachable.ts'
import { WbError } from '../../contract/errors.ts'

/** The runtime ends, and another one may stand up in its place. */
const passingCodes: readonly string[] = ['draining', 'control_plane_unavailable']

/** True of an error that goes away when the runtime is back, so that the same may be asked again. */
export function isAway(error: unknown): boolean {
  return error instanceof Unreachable || (error instanceof WbError && passingCodes.includes(error.code))
}
