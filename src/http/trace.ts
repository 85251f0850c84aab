import { newRequestId, randomNameHex } from '../base/id.ts'

/** Identifiers of a request, used in response headers, error bodies and the log. */
export interface Trace {
  readonly requestId: string
  readonly traceparent: string
}

const idShape = /^[A-Za-z0-9._:-]{1,128}$/
const traceparentShape = /^00-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

/**
 * Returns the caller's request ID if valid, otherwise the trace ID of its `traceparent`, otherwise a new
 * ULID; and the caller's `traceparent`, or a new sampled one.
 *
 * @see docs/http.md#request-ids, https://www.w3.org/TR/trace-context/
 */
export function createTrace(sentId: string | null | undefined, sentParent: string | null | undefined): Trace {
  const parent = sentParent ? traceparentShape.exec(sentParent) : null
  const requestId = sentId && idShape.test(sentId) ? sentId : (parent?.[1] ?? newRequestId())
  return { requestId, traceparent: parent?.[0] ?? newTraceparent() }
}

function newTraceparent(): string {
  return `00-${randomNameHex(16)}-${randomNameHex(8)}-01`
}
