import { abortWith } from '../base/deadline.ts'
import { WbError } from '../contract/errors.ts'
import type { Caller } from './caller.ts'

/**
 * Runs work with a signal that fires when the caller disconnects or the runtime shuts down.
 *
 * @throws the abort reason  if the caller has disconnected
 */
export async function runUntilCallerDisconnects<T>(
  caller: Pick<Caller, 'signal' | 'onDrain'>,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const { signal: callerSignal } = caller
  const cancel = new AbortController()
  const removeAbortListener = abortWith(cancel, callerSignal)
  const removeDrainListener = caller.onDrain(() => cancel.abort(drainingError()))
  try {
    const result = await work(cancel.signal)
    callerSignal.throwIfAborted()
    return result
  } finally {
    removeDrainListener()
    removeAbortListener()
  }
}

export function drainingError(): WbError {
  return new WbError('draining', 'the runtime is shutting down')
}
