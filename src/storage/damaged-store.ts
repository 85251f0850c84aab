import { WbError } from '../contract/errors.ts'

/** Hint for a user whose store is damaged. */
export const damageHint =
  'Run wb doctor --deep on the machine with the data directory. It reports the damage, and which data can be recovered.'

/**
 * Creates the error for a part of a store that cannot be read.
 *
 * @param part   name of the part in the message, such as `row 7 of documents`
 * @param cause  logged, but not shown
 */
export function damagedStore(part: string, cause?: unknown): WbError {
  const message = `the store is damaged: ${part} cannot be read`
  return new WbError('control_plane_unavailable', message, { hint: damageHint }, { cause })
}
