import { presentableMessage } from '../base/redact.ts'
import { type ErrorEnvelope, errorDocs, WbError } from '../contract/errors.ts'

/** Error response to a client. */
export interface ErrorReply {
  readonly status: number
  readonly headers: Readonly<Record<string, string | readonly string[]>>
  readonly envelope: ErrorEnvelope
}

/**
 * Returns the error response for any thrown value. An error that is not a `WbError` is a bug: the client receives only
 * `internal_error` and the request ID, with which an operator can find the details in the log.
 *
 * @see docs/requirements.md#S7.1-04
 */
export function toErrorReply(thrown: unknown, requestId: string): ErrorReply {
  const error = toWbError(thrown)
  return {
    status: error.status,
    headers: {
      ...(error.status === 401 ? { 'www-authenticate': 'Bearer' } : undefined),
      ...error.facts.headers,
    },
    envelope: {
      error: {
        code: error.code,
        message: presentableMessage(error.message),
        requestId,
        hint: error.hint,
        docs: errorDocs(error.code),
      },
    },
  }
}

export function toWbError(thrown: unknown): WbError {
  if (thrown instanceof WbError) return thrown
  return new WbError('internal_error', 'the runtime could not process this request', {}, { cause: thrown })
}
