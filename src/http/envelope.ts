import { presentable } from '../base/redact.ts'
import { type ErrorEnvelope, errorDocs, WbError } from '../contract/errors.ts'

/** What a client is told of a failure. */
export interface Failure {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly envelope: ErrorEnvelope
}

/**
 * The one form of every failure. What is not a `WbError` is a defect: the client learns nothing of it but the id
 * under which the log holds it.
 *
 * @see docs/requirements.md#S7.1-04
 */
export function failureOf(thrown: unknown, requestId: string): Failure {
  const error = asWbError(thrown)
  return {
    status: error.status,
    headers: {
      ...(error.status === 401 ? { 'www-authenticate': 'Bearer' } : undefined),
      ...error.facts.headers,
    },
    envelope: {
      error: {
        code: error.code,
        message: presentable(error.message),
        requestId,
        hint: error.hint,
        docs: errorDocs(error.code),
      },
    },
  }
}

export function asWbError(thrown: unknown): WbError {
  if (thrown instanceof WbError) return thrown
  return new WbError('internal_error', 'the runtime failed to answer this request', {}, { cause: thrown })
}
