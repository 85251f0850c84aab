import type { RetryHandler } from 'undici'

const attemptsMax = 3
const backoffMs = 250
/**
 * Maximum wait before a retry, in milliseconds. If the server requests a longer one, the caller gets the
 * response and decides.
 */
const pauseMaxMs = 20_000

/**
 * Methods that are safe to retry if the outcome is unknown.
 *
 * @see RFC 9110 section 9.2.2
 */
const idempotentMethods = new Set(['GET', 'HEAD', 'PUT', 'DELETE'])
/**
 * Error codes of a connection that broke after it was made. A refused connection or an unknown name is not
 * retried.
 */
export const brokenConnectionCodes: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'])
/** Statuses that a gateway in front of a runtime sends, or that are temporary. */
const temporaryStatuses = new Set([429, 502, 504])
/**
 * Statuses that are retried with `Retry-After`. A 503 without it is not temporary; a runtime in rescue mode
 * sends it.
 */
const retryAfterStatuses = new Set([429, 503])

/** Failed attempt, as reported by undici: a status of 300 or more, or a connection error. */
interface FailedAttempt extends Error {
  readonly code?: string
  readonly statusCode?: number
  readonly headers?: Readonly<Record<string, string | string[] | undefined>>
}

/** A retry that is about to start. */
export interface Retry {
  /** Status of the response, or code of the connection error. */
  readonly why: string
  readonly waitMs: number
}

export interface RetryContext {
  readonly method: string
  readonly signal?: AbortSignal
  /** Returns true once a response was passed on. */
  hasAnswered(): boolean
  onRetry?(retry: Retry): void
  /** Called with the number of bytes of a text body sent so far. It restarts from 0 in each attempt. */
  onSent?(bytes: number): void
}

/** Returns options for undici's retry interceptor, which decide if and when a request is sent again. */
export function retryOptions({
  method,
  signal,
  hasAnswered,
  onRetry,
}: RetryContext): RetryHandler.RetryOptions {
  return {
    throwOnError: false,
    retry(failed: FailedAttempt, { state }, done) {
      const waitMs = hasAnswered() ? undefined : pauseMs(method, failed, state.counter)
      if (waitMs === undefined || signal?.aborted) return done(failed)
      onRetry?.({ why: String(failed.statusCode ?? failed.code), waitMs })
      const giveUp = () => {
        clearTimeout(timer)
        // After a response, undici ends an aborted request itself; after a broken connection it does not.
        if (failed.statusCode === undefined) done(signal?.reason as Error)
      }
      const timer = setTimeout(() => {
        signal?.removeEventListener('abort', giveUp)
        done()
      }, waitMs)
      signal?.addEventListener('abort', giveUp, { once: true })
    },
  }
}

/**
 * Returns the time to wait before the next attempt in milliseconds; undefined for no retry.
 *
 * @param attempt  number of failed attempts, including this one
 */
function pauseMs(
  method: string,
  { statusCode, code, headers }: FailedAttempt,
  attempt: number,
): number | undefined {
  if (attempt > attemptsMax) return undefined
  const growingMs = backoffMs * 2 ** (attempt - 1)
  const mayRepeat = idempotentMethods.has(method)
  if (statusCode === undefined)
    return mayRepeat && brokenConnectionCodes.has(code ?? '') ? growingMs : undefined
  const askedMs = retryAfterStatuses.has(statusCode) ? retryAfterMs(headers) : undefined
  if (askedMs !== undefined) return askedMs > pauseMaxMs ? undefined : Math.max(askedMs, growingMs)
  return mayRepeat && temporaryStatuses.has(statusCode) ? growingMs : undefined
}

/**
 * Returns the delay in milliseconds. A date is relative to the `Date` header of the response.
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
