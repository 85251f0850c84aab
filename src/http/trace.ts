import { newRequestId, randomNameHex } from '../base/id.ts'

/** Identifiers of a request, used in response headers, error bodies and the log. */
export interface Trace {
  readonly requestId: string
  readonly traceparent: string
}

const requestIdPattern = /^[A-Za-z0-9._:-]{1,128}$/
const traceparentPattern = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

/**
 * Creates the identifiers of a request. The request ID is the one that the client sent, the trace ID of its
 * `traceparent`, or a new ULID. `traceparent` is the one that the client sent, or a new one with the sampled flag.
 * Invalid values from the client are ignored.
 *
 * @see docs/http.md#request-ids, https://www.w3.org/TR/trace-context/
 */
export function createTrace(
  sentRequestId: string | null | undefined,
  sentTraceparent: string | null | undefined,
): Trace {
  const parent = sentTraceparent ? traceparentPattern.exec(sentTraceparent) : null
  const isValidId = sentRequestId && requestIdPattern.test(sentRequestId)
  const requestId = isValidId ? sentRequestId : (parent?.[1] ?? newRequestId())
  return { requestId, traceparent: parent?.[0] ?? newTraceparent() }
}

function newTraceparent(): string {
  return `00-${randomNameHex(16)}-${randomNameHex(8)}-01`
}
