import type { RetryHandler } from 'undici'

const triesMax = 3
const backoffMs = 250
/** Who is told to wait longer gets the answer, and may wait. */
const pauseMsMax = 20_000

/** Methods that may be sent again when nobody knows what became of them. @see RFC 9110 section 9.2.2 */
const idempotent = new Set(['GET', 'HEAD', 'PUT', 'DELETE'])
/** What befalls a connection that was made. That nothing listens, or no name leads there, is said at once. */
export const broken: ReadonlySet<string> = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET'])
/** Said by what stands before a runtime, or for the moment. */
const passing = new Set([429, 502, 504])
/** A 503 without `Retry-After` says that more is amiss than the moment: a runtime in rescue mode answers so. */
const askedToWait = new Set([429, 503])

/** What undici tells of a try: an answer of 300 and more, or an error of the connection. */
interface Failed extends Error {
  readonly code?: string
  readonly statusCode?: number
  readonly headers?: Readonly<Record<string, string | string[] | undefined>>
}

/** A request is about to be sent again. */
export interface Retry {
  /** Status of the answer, or code of what broke. */
  readonly why: string
  readonly waitMs: number
}

export interface Sending {
  readonly method: string
  readonly signal?: AbortSignal
  /** True once an answer was handed on. */
  hasAnswered(): boolean
  onRetry?(retry: Retry): void
  /** Told how many bytes of a text have left, in each try anew. */
  onSent?(bytes: number): void
}

/** Options for undici's retry interceptor: when one request is sent again, and after how long. */
export function retries({ method, signal, hasAnswered, onRetry }: Sending): RetryHandler.RetryOptions {
  return {
    throwOnError: false,
    retry(failed: Failed, { state }, done) {
      const waitMs = hasAnswered() ? undefined : pauseMs(method, failed, state.counter)
      if (waitMs === undefined || signal?.aborted) return done(failed)
      onRetry?.({ why: String(failed.statusCode ?? failed.code), waitMs })
      const giveUp = () => {
        clearTimeout(timer)
        // Under an answer undici itself ends a request that is given up; after a broken connection nobody else does.
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
 * How long to wait before the next try; undefined where there is none.
 *
 * @param attempt  tries that failed, this one included
 */
function pauseMs(method: string, { statusCode, code, headers }: Failed, attempt: number): number | undefined {
  if (attempt > triesMax) return undefined
  const growingMs = backoffMs * 2 ** (attempt - 1)
  const mayRepeat = idempotent.has(method)
  if (statusCode === undefined) return mayRepeat && broken.has(code ?? '') ? growingMs : undefined
  const askedMs = askedToWait.has(statusCode) ? retryAfterMs(headers) : undefined
  if (askedMs !== undefined) return askedMs > pauseMsMax ? undefined : Math.max(askedMs, growingMs)
  return mayRepeat && passing.has(statusCode) ? growingMs : undefined
}

/** A date counts from the answer's own clock. @see RFC 9110 section 10.2.3 */
function retryAfterMs(headers: Failed['headers']): number | undefined {
  const text = headers?.['retry-after']
  if (typeof text !== 'string') return undefined
  const waitMs = /^\d+$/.test(text)
    ? Number(text) * 1_000
    : Date.parse(text) - Date.parse(String(headers?.date))
  return Number.isNaN(waitMs) ? undefined : Math.max(0, waitMs)
}
