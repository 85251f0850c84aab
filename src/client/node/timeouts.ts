/** Idle timeouts of a request in milliseconds, named as in undici. */
export interface Timeouts {
  /** Maximum time between the end of the request and the start of the response. */
  readonly headersTimeout: number
  /** Maximum time between two chunks of the response. */
  readonly bodyTimeout: number
}

const readTimeoutMs = 60_000
/** Timeout for requests that the runtime needs more time for: ingestion, deletions, and model calls. */
const workTimeoutMs = 300_000

/**
 * Returns the timeouts of one request. Event streams have the short timeout, because the runtime sends pings. A batch
 * has the long timeout, because each response line arrives only after its text is ingested.
 *
 * @param overrideMs  replaces all timeouts
 */
export function requestTimeouts(
  { method, body }: { method: string; body?: unknown },
  overrideMs?: number,
): Timeouts {
  const isRead = method === 'GET' || method === 'HEAD'
  const isBatch = body !== undefined && typeof body !== 'string'
  return {
    headersTimeout: overrideMs ?? (isRead ? readTimeoutMs : workTimeoutMs),
    bodyTimeout: overrideMs ?? (isBatch ? workTimeoutMs : readTimeoutMs),
  }
}
