import type { RetryHandler } from 'undici'

const attemptsMax = 3
const backoffMs = 250
/**
 * Maximum time to wait before a retry. If the server requests a longer time, the request is not retried, and the
 * caller gets the response.
 */
const retryDelayMaxMs = 20_000

/**
 * Methods that are safe to retry if the outcome of the first attempt is unknown.
 *
 * @see RFC 9110 section 9.2.2
 */
const idempotentMethods = new Set(['GET', 'HEAD', 'PUT', 'DELETE'])
/**
 * Error codes of a connection that broke after it was established. Refused connections and unknown host names are not
 * retried.
 */
export const brokenConnectionCodes: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'])
/** Statuses of temporary failures, including those that a gateway sends if it cannot reach the runtime. */
const temporaryStatuses = new Set([429, 502, 504])
/**
 * Statuses that are retried if the response has `Retry-After`. A 503 without this header is not temporary: a runtime
 * in rescue mode sends it.
 */
const retryAfterStatuses = new Set([429, 503])

/** A failed attempt, as reported by undici: a status of 300 or more, or a connection error. */
interface FailedAttempt extends Error {
  readonly code?: string
  readonly statusCode?: number
  readonly headers?: Readonly<Record<string, string | string[] | undefined>>
}

/** A retry that is about to start. */
export interface Retry {
  /** Status of the response, or code of the connection error. */
  readonly reason: string
  readonly waitMs: number
}

export interface RetryContext {
  readonly method: string
  readonly signal?: AbortSignal
  /** Returns true after the caller has received a response. */
  hasResponse(): boolean
  onRetry?(retry: Retry): void
  /** Called with the number of bytes of a string body sent so far. The number restarts from 0 in each attempt. */
  onSent?(bytes: number): void
}

/** Returns options for undici's retry interceptor, which decide if and when a request is retried. */
export function retryOptions({
  method,
  signal,
  hasResponse,
  onRetry,
}: RetryContext): RetryHandler.RetryOptions {
  return {
    throwOnError: false,
    retry(failed: FailedAttempt, { state }, done) {
      const waitMs = hasResponse() ? undefined : retryDelayMs(method, failed, state.counter)
      if (waitMs === undefined || signal?.aborted) return done(failed)
      onRetry?.({ reason: String(failed.statusCode ?? failed.code), waitMs })
      const onAbort = () => {
        clearTimeout(timer)
        // undici ends an aborted request after a response, but not after a broken connection.
        if (failed.statusCode === undefined) done(signal?.reason as Error)
      }
      const timer = setTimeout(() => {
        signal?.removeEventListener('abort', onAbort)
        done()
      }, waitMs)
      signal?.addEventListener('abort', onAbort, { once: true })
    },
  }
}

/**
 * Returns the time to wait before the next attempt, in milliseconds. Returns undefined if the request must not be
 * retried.
 *
 * @param attempt  number of failed attempts, including this one
 */
function retryDelayMs(
  method: string,
  { statusCode, code, headers }: FailedAttempt,
  attempt: number,
): number | undefined {
  if (attempt > attemptsMax) return undefined
  const backoffDelayMs = backoffMs * 2 ** (attempt - 1)
  const isIdempotent = idempotentMethods.has(method)
  if (statusCode === undefined)
    return isIdempotent && brokenConnectionCodes.has(code ?? '') ? backoffDelayMs : undefined
  const requestedMs = retryAfterStatuses.has(statusCode) ? retryAfterMs(headers) : undefined
  if (requestedMs !== undefined)
    return requestedMs > retryDelayMaxMs ? undefined : Math.max(requestedMs, backoffDelayMs)
  return isIdempotent && temporaryStatuses.has(statusCode) ? backoffDelayMs : undefined
}

/**
 * Returns the delay of a `Retry-After` header in milliseconds. A date is relative to the `Date` header of the response.
 *
 * @see RFC 9110 section 10.2.3
 */
function retryAfterMs(headers: FailedAttempt['headers']): number | undefined {
  const text = headers?.['retry-after']
  if (typeof text !== 'string') return undefined
  const waitMs = /^\d+$/.test(text)
    ? Number(text) * 1_000
    : Date.parse(text) - Date.parse(String(headers?.date))
  return Number.isNaN(waitMs) ? undefined : Math.max(0, waitMs)
}
