/** Idle timeouts of a request in milliseconds, with the names of undici. */
export interface Timeouts {
  /** Until the answer begins, once the request is sent. */
  readonly headersTimeout: number
  /** Between two pieces of the answer. */
  readonly bodyTimeout: number
}

const idleTimeoutMs = 60_000
/** For requests that keep the runtime busy before it answers: ingest, deletions, and calls of models. */
const workTimeoutMs = 300_000

/**
 * Returns the timeouts of one request. Event streams need no exception, because the runtime sends pings. The lines of a
 * batch arrive as its texts are ingested.
 *
 * @param setMs  replaces all timeouts
 */
export function timeoutsOf({ method, body }: { method: string; body?: unknown }, setMs?: number): Timeouts {
  const isRead = method === 'GET' || method === 'HEAD'
  const isBatch = body !== undefined && typeof body !== 'string'
  return {
    headersTimeout: setMs ?? (isRead ? idleTimeoutMs : workTimeoutMs),
    bodyTimeout: setMs ?? (isBatch ? workTimeoutMs : idleTimeoutMs),
  }
}
