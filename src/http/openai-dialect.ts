import type { ErrorEnvelope } from '../contract/errors.ts'

/** Error types of the OpenAI API by status. Other statuses below 500 are `invalid_request_error`. */
const errorTypes: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  429: 'rate_limit_error',
}

/** Field name at the start of a message, as in `messages.0.role: is required`. */
const leadingField = /^([a-z_]+(?:\.\w+)*): /

/** Returns the error envelope with the fields that clients of the OpenAI API read. */
export function openAiError(status: number, { error }: ErrorEnvelope): ErrorEnvelope {
  const type = errorTypes[status] ?? (status >= 500 ? 'server_error' : 'invalid_request_error')
  const param = error.code === 'agent_not_found' ? 'model' : (leadingField.exec(error.message)?.[1] ?? null)
  return { error: { ...error, type, param } as ErrorEnvelope['error'] }
}

/** Returns an event in the format of the OpenAI API: data without an event name, and `[DONE]` at the end. */
export function openAiEvent(event: string, data: unknown): string {
  return `data: ${event === 'done' ? '[DONE]' : JSON.stringify(data)}\n\n`
}
