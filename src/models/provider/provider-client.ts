import { systemClock } from '../../base/clock.ts'
import { TimedOut, withTimeout } from '../../base/deadline.ts'
import type { Outbound } from '../outbound.ts'
import { connectionProblemIn } from './connection-problem.ts'
import { createSend, ErrorResponse, type RequestTarget, readJsonAnswer } from './exchange.ts'
import { findKnownRefusal, hintForStatus } from './known-refusals.ts'
import { ProviderFailure, providerTimeout } from './provider-failure.ts'
import { withRetries } from './retry.ts'
import { type StreamOptions, streamEvents } from './stream.ts'

const timeoutMsDefault = 30_000
const timeoutMsMax = 600_000

/** Endpoint and limits of requests to a provider. */
export interface ProviderCalls extends RequestTarget {
  /** Maximum time for a whole answer, or between two parts of a streamed one; null for 30 seconds. */
  readonly timeoutMs: number | null
  /** Maximum number of retries after a timeout, a failed connection, or status 408, 409, 429 or 5xx. */
  readonly retriesMax: number
  /**
   * True if requests that time out are not repeated, because a local model is still busy with the first one.
   */
  readonly isLocal?: boolean
}

/** Sends requests to one provider. Paths are relative to the endpoint. */
export interface ProviderClient {
  /**
   * Sends a request.
   *
   * @returns the JSON of the response
   * @throws ProviderFailure
   * @throws the reason of the signal
   */
  post(path: string, body: object, signal: AbortSignal): Promise<unknown>
  /**
   * Streams the events of an answer, from the first one with content. Ends after a silence of `timeoutMs`, or
   * after ten minutes. Leaving the loop cancels the request.
   *
   * @throws ProviderFailure  also if the answer ends before the provider marks its end
   * @throws the reason of the signal
   */
  stream(path: string, body: object, reading: StreamOptions): AsyncGenerator<unknown, void, undefined>
}

/** Opens a client of a provider. */
export function openProviderClient(calls: ProviderCalls, outbound: Outbound): ProviderClient {
  const { credential, retriesMax, isLocal = false } = calls
  const timeoutMs = Math.min(calls.timeoutMs ?? timeoutMsDefault, timeoutMsMax)
  return {
    async post(path, body, signal) {
      const send = createSend(calls, path, outbound)
      const json = JSON.stringify(body)
      const attempt = async () => {
        try {
          const read = async (until: AbortSignal) => readJsonAnswer(await send(json, until), credential)
          return await withTimeout(systemClock, timeoutMs, read, signal)
        } catch (error) {
          throw isLocal && error instanceof TimedOut ? providerTimeout(error) : error
        }
      }
      try {
        return await withRetries(attempt, { retriesMax, signal })
      } catch (error) {
        signal.throwIfAborted()
        throw toProviderFailure(error)
      }
    },
    stream(path, body, reading) {
      const send = createSend(calls, path, outbound)
      const json = JSON.stringify(body)
      return streamEvents({
        ...reading,
        credential,
        retriesMax,
        isLocal,
        idleMs: timeoutMs,
        totalMs: timeoutMsMax,
        send: signal => send(json, signal),
        toProviderFailure,
      })
    },
  }
}

/** Returns the failure for an error of the last attempt. */
function toProviderFailure(cause: unknown): ProviderFailure {
  if (cause instanceof ProviderFailure) return cause
  if (cause instanceof ErrorResponse) return refusedFailure(cause)
  if (cause instanceof TimedOut) return providerTimeout(cause)
  const { reason, ...facts } = connectionProblemIn(cause) ?? { reason: 'could not be reached' }
  return new ProviderFailure(reason, facts, {}, cause)
}

function refusedFailure(cause: ErrorResponse): ProviderFailure {
  const { status: providerStatus, said } = cause
  const isRedirect = providerStatus >= 300 && providerStatus < 400
  if (isRedirect)
    return new ProviderFailure(
      'answered with a redirect, which is not followed',
      { hint: hintForStatus(providerStatus), providerStatus },
      said,
      cause,
    )
  const { kind, hint = hintForStatus(providerStatus), reason } = findKnownRefusal(providerStatus, said) ?? {}
  const what = reason ? `${reason} (status ${providerStatus})` : `answered with status ${providerStatus}`
  return new ProviderFailure(what, { hint, providerStatus, ...(kind && { kind }) }, said, cause)
}
