import { systemClock } from '../../base/clock.ts'
import { TimedOut, withTimeout } from '../../base/deadline.ts'
import type { Outbound } from '../outbound.ts'
import type { RequestPace } from '../request-paces.ts'
import { connectionProblemIn } from './connection-problem.ts'
import {
  createSend,
  ErrorResponse,
  IncompleteJson,
  type RequestTarget,
  readJsonResponse,
} from './exchange.ts'
import { findKnownRefusal, hintForStatus } from './known-refusals.ts'
import { ProviderFailure, providerTimeout } from './provider-failure.ts'
import { requestedPauseMsDefault, withRetries } from './retry.ts'
import { type StreamOptions, streamEvents } from './stream.ts'

const timeoutMsDefault = 30_000
const timeoutMsMax = 600_000

/** Endpoint and limits of requests to a provider. */
export interface ProviderCallSettings extends RequestTarget {
  /** Maximum time for a whole response, or between two parts of a streamed response. Null means 30 seconds. */
  readonly timeoutMs: number | null
  /** Maximum number of retries after a timeout, a failed connection, or status 408, 409, 429 or 5xx. */
  readonly retriesMax: number
  /** Maximum pause before a retry of `post` that the provider can request, in milliseconds; 20 seconds by default. */
  readonly requestedPauseMsMax?: number
  /** Pace that `post` shares with other requests to the service. */
  readonly pace?: RequestPace
  /** Maximum size of a response to `post`; 4 MB by default. */
  readonly responseBytesMax?: number
  /**
   * True if requests that time out must not be repeated, because a local model may still be processing them.
   */
  readonly isLocal?: boolean
}

/** Sends requests to one endpoint. Paths are relative to it. */
export interface ProviderClient {
  /**
   * Sends a request, and returns the parsed JSON of the response.
   *
   * @throws ProviderFailure
   * @throws the reason of the signal
   */
  post(path: string, body: object, signal: AbortSignal): Promise<unknown>
  /**
   * Streams the events of an answer, starting with the first event that has content. If the consumer stops early, the
   * request is cancelled.
   *
   * @throws ProviderFailure  the request failed, no event arrived for `timeoutMs`, the answer took more than ten
   *   minutes, or it ended before the provider marked its end
   * @throws the reason of the signal
   */
  stream(path: string, body: object, options: StreamOptions): AsyncGenerator<unknown, void, undefined>
}

/** Creates a client for an endpoint of a provider. */
export function openProviderClient(settings: ProviderCallSettings, outbound: Outbound): ProviderClient {
  const { credential, retriesMax, pace, isLocal = false } = settings
  const { requestedPauseMsMax = requestedPauseMsDefault } = settings
  const timeoutMs = Math.min(settings.timeoutMs ?? timeoutMsDefault, timeoutMsMax)
  return {
    async post(path, body, signal) {
      const send = createSend(settings, path, outbound)
      const json = JSON.stringify(body)
      const attempt = async () => {
        await pace?.waitUntilReady(signal, requestedPauseMsMax)
        try {
          const read = async (attemptSignal: AbortSignal) =>
            readJsonResponse(await send(json, attemptSignal), credential, settings.responseBytesMax)
          return await withTimeout(systemClock, timeoutMs, read, signal)
        } catch (error) {
          throw isLocal && error instanceof TimedOut ? providerTimeout(error) : error
        }
      }
      try {
        const onRequestedPause = (pauseMs: number) => pace?.pauseFor(pauseMs)
        return await withRetries(attempt, { retriesMax, requestedPauseMsMax, signal, onRequestedPause })
      } catch (error) {
        signal.throwIfAborted()
        throw toProviderFailure(error)
      }
    },
    stream(path, body, options) {
      const send = createSend(settings, path, outbound)
      const json = JSON.stringify(body)
      return streamEvents({
        ...options,
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

/** Converts the error of the last attempt to the failure to throw. */
function toProviderFailure(cause: unknown): ProviderFailure {
  if (cause instanceof ProviderFailure) return cause
  if (cause instanceof ErrorResponse) return errorResponseFailure(cause)
  if (cause instanceof TimedOut) return providerTimeout(cause)
  if (cause instanceof IncompleteJson)
    return new ProviderFailure(
      `sent incomplete JSON (${cause.bytes} bytes)`,
      { hint: 'Retry. If it happens again, check the server of the service, and proxies in front of it.' },
      {},
      cause,
    )
  const { reason, ...facts } = connectionProblemIn(cause) ?? { reason: 'could not be reached' }
  return new ProviderFailure(reason, facts, {}, cause)
}

function errorResponseFailure(cause: ErrorResponse): ProviderFailure {
  const { status: providerStatus, providerReason } = cause
  const isRedirect = providerStatus >= 300 && providerStatus < 400
  if (isRedirect)
    return new ProviderFailure(
      'responded with a redirect, which is not followed',
      { hint: hintForStatus(providerStatus), providerStatus },
      providerReason,
      cause,
    )
  const {
    kind,
    hint = hintForStatus(providerStatus),
    reason,
  } = findKnownRefusal(providerStatus, providerReason) ?? {}
  const problem = reason ? `${reason} (status ${providerStatus})` : `responded with status ${providerStatus}`
  return new ProviderFailure(problem, { hint, providerStatus, ...(kind && { kind }) }, providerReason, cause)
}
