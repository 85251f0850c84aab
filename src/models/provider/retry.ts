import { setTimeout as pause } from 'node:timers/promises'
import { unlessAborted } from '../../base/deadline.ts'
import { withJitter } from '../../base/jitter.ts'
import { ErrorResponse, IncompleteJson } from './exchange.ts'
import { ProviderFailure } from './provider-failure.ts'

/** Maximum pause before a retry that a provider can request, unless the caller sets another one. */
export const requestedPauseMsDefault = 20_000
const firstPauseMs = 500
const pauseMsMax = 8_000

export interface RetryOptions {
  /** Maximum number of repetitions. */
  readonly retriesMax: number
  /** Maximum pause in milliseconds that a provider can request. After a request for a longer one, there is no retry. */
  readonly requestedPauseMsMax?: number | undefined
  readonly signal: AbortSignal
  /** Called with each pause in milliseconds that a provider requests before a retry. */
  readonly onRequestedPause?: ((pauseMs: number) => void) | undefined
}

/**
 * Calls `attempt` until it succeeds or must not be repeated. Repeats it after a timeout, a failed connection, or an
 * error response that can be temporary. Repeats it once after incomplete JSON. Waits before each retry as long as the
 * provider requests. If the provider requests no pause, waits for 0.5 seconds before the first retry, and twice as long
 * before each further retry, up to 8 seconds, minus jitter of up to 25 %.
 *
 * @param attempt  throws a `ProviderFailure` if the request must not be repeated
 * @throws the error of the last attempt
 * @throws the reason of the signal
 */
export async function withRetries<T>(attempt: () => Promise<T>, options: RetryOptions): Promise<T> {
  const { retriesMax, signal, requestedPauseMsMax = requestedPauseMsDefault, onRequestedPause } = options
  for (let retries = 0; ; retries++) {
    try {
      return await unlessAborted(attempt(), signal)
    } catch (error) {
      signal.throwIfAborted()
      const pauseMs = pauseBefore(error, retries, requestedPauseMsMax)
      if (pauseMs === undefined || retries >= retriesMax) throw error
      if (error instanceof ErrorResponse && error.pauseMs !== undefined) onRequestedPause?.(pauseMs)
      await pause(pauseMs, undefined, { signal }).catch(() => signal.throwIfAborted())
    }
  }
}

/** Returns the pause before the next attempt in milliseconds; undefined if the request must not be repeated. */
function pauseBefore(error: unknown, retries: number, requestedPauseMsMax: number): number | undefined {
  if (error instanceof ProviderFailure) return undefined
  if (error instanceof IncompleteJson && retries > 0) return undefined
  const usualMs = withJitter(Math.min(firstPauseMs * 2 ** retries, pauseMsMax))
  if (!(error instanceof ErrorResponse)) return usualMs
  const { isTransient, pauseMs = usualMs } = error
  return isTransient && pauseMs <= requestedPauseMsMax ? pauseMs : undefined
}
