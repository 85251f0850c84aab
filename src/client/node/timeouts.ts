/** Idle timeouts of a request in milliseconds, named as in undici. */
export interface Timeouts {
  /** Maximum time between the end of the request and the start of the response. */
  readonly headersTimeout: number
  /** Maximum time between two chunks of the response. */
  readonly bodyTimeout: number
}

const idleTimeoutMs = 60_000
/** Timeout for requests that take the runtime longer to answer: ingest, deletions, and model calls. */
const workTimeoutMs = 300_000

/**
 * Returns the timeouts of one request. Event streams need no exception, because the runtime sends pings. The
 * response lines of a batch arrive as its texts are ingested.
 *
 * @param overrideMs  replaces all timeouts
 */
export function timeoutsOf(
  { method, body }: { method: string; body?: unknown },
  overrideMs?: number,
): Timeouts {
  const isRead = method === 'GET' || method === 'HEAD'
  const isBatch = body !== undefined && typeof body !== 'string'
  return {
    headersTimeout: overrideMs ?? (isRead ? idleTimeoutMs : workTimeoutMs),
    bodyTimeout: overrideMs ?? (isBatch ? workTimeoutMs : idleTimeoutMs),
  }
}
