import { parseJson } from '../base/parse-json.ts'
import { type ErrorCode, isErrorCode, rescueHint, WbError } from '../contract/errors.ts'
import type { IncomingResponse } from './fetch.ts'
import { Unreachable } from './unreachable.ts'

/** Error codes by status, used if this version does not know the code in a response. */
const codeOfHttpStatus: Record<number, ErrorCode> = {
  400: 'invalid_request',
  401: 'unauthorized',
  403: 'forbidden',
  404: 'not_found',
  409: 'conflict',
  413: 'payload_too_large',
  422: 'validation_error',
  429: 'rate_limited',
  431: 'headers_too_large',
  501: 'list_records_not_supported',
  502: 'data_api_error',
  503: 'control_plane_unavailable',
}

interface ErrorFields {
  code: string
  message: string
  requestId?: string
  hint?: string
}

/**
 * Converts an error response to the error that the runtime threw.
 *
 * @see docs/requirements.md#S7.1-01
 */
export async function errorFromResponse(response: IncomingResponse): Promise<WbError | Unreachable> {
  if (response.status >= 300 && response.status < 400) return redirectError(response)
  const body = await response.text()
  const fields = parseEnvelope(body) ?? parseHealthProbe(body)
  if (!fields) return notARuntimeError(response)
  const { code, message } = fields
  const facts = {
    requestId: fields.requestId,
    hint: fields.hint,
    wireCode: code,
    wireStatus: response.status,
    ...retryAfterOf(response),
  }
  if (isErrorCode(code)) return new WbError(code, message, facts)
  return new WbError(codeOfHttpStatus[response.status] ?? 'internal_error', message, facts)
}

/** Returns the time to wait before a retry, from `Retry-After`; nothing if the header is absent or a date. */
function retryAfterOf({ headers }: IncomingResponse): { retryAfterMs?: number } {
  const seconds = headers.get('retry-after') ?? ''
  return /^\d{1,6}$/.test(seconds) ? { retryAfterMs: Number(seconds) * 1_000 } : {}
}

function parseEnvelope(body: string): ErrorFields | undefined {
  const { code, message, requestId, hint } = {
    ...(parseObject(body).error as Partial<ErrorFields> | undefined),
  }
  if (typeof code !== 'string' || typeof message !== 'string') return undefined
  return { code, message, requestId: stringOrUndefined(requestId), hint: stringOrUndefined(hint) }
}

/** Returns the fields of a JSON object. Returns an empty object if the string is not a JSON object. */
function parseObject(body: string): Record<string, unknown> {
  return { ...(parseJson(body) as Record<string, unknown> | null | undefined) }
}

/** Parses the response to a health probe in rescue mode, which has no error envelope. */
function parseHealthProbe(body: string): ErrorFields | undefined {
  const { status, reason } = parseObject(body)
  if (status !== 'degraded' || typeof reason !== 'string') return undefined
  return {
    code: reason,
    message: 'this runtime is in rescue mode',
    hint: rescueHint,
  }
}

/** Returns a field of a response if it is a string. A field can have any type. */
function stringOrUndefined(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function redirectError(response: IncomingResponse): Unreachable {
  return new Unreachable(
    `${originOf(response)} redirects to ${redirectTarget(response)}; API calls do not follow redirects`,
    'Set --url to the address of the runtime itself.',
  )
}

/** Returns the target of a redirect without its query and user information, which can contain secrets. */
function redirectTarget({ url, headers }: IncomingResponse): string {
  const location = headers.get('location') ?? ''
  if (!URL.canParse(location, url || undefined)) return 'another address'
  const { protocol, host, pathname } = new URL(location, url || undefined)
  return /^https?:$/.test(protocol) ? `${protocol}//${host}${pathname}` : 'another address'
}

/** Hint for a response that is not from a runtime. */
export const addressHint = 'Check the address (--url, WB_URL), and any proxy in front of the runtime.'

/** Returns the error for a response that is not from a runtime. */
export function notARuntimeError(response: IncomingResponse): Unreachable {
  return new Unreachable(
    `${originOf(response)} responded with ${response.status}, but is not a Workbase runtime`,
    addressHint,
  )
}

/** Returns the origin of a response, for messages. */
export function originOf({ url }: IncomingResponse): string {
  return url === '' ? 'the runtime' : new URL(url).origin
}
