import { parseJson } from '../../base/parse-json.ts'
import { BodyTooLong, readBody } from '../../base/read-body.ts'
import { endpointRefusalIn } from '../endpoint-guard.ts'
import { type Outbound, type OutboundResponse, requestedDelayMs } from '../outbound.ts'
import { errorIn, isFinalRefusal, statusOf } from './known-refusals.ts'
import {
  ProviderFailure,
  type ProviderReason,
  providerReasonIn,
  searchedCharsMax,
} from './provider-failure.ts'

/** Maximum size of a response that is parsed as a whole, unless the caller sets another one. Parsing blocks other requests. */
export const wholeResponseBytesMax = 4_000_000

/**
 * Maximum length, in UTF-16 units, of a response with a success status that is treated as an error if it contains one.
 * In a longer response, the error comes with a partial answer.
 */
const errorCharsMax = 16_384

/** Endpoint, credential and headers of requests. */
export interface RequestTarget {
  readonly endpoint: URL
  readonly credential: string | undefined
  /** Headers to send in addition to the standard ones. */
  readonly headers?: Readonly<Record<string, string>>
}

/**
 * Sends a request with a JSON body to the provider.
 *
 * @throws ProviderFailure  the guard refuses the connection
 * @throws any error of the connection
 */
export type SendRequest = (body: string, signal: AbortSignal) => Promise<OutboundResponse>

/** Returns a function that sends requests to a path below an endpoint. */
export function createSend(
  { endpoint, credential, headers }: RequestTarget,
  path: string,
  outbound: Outbound,
): SendRequest {
  const url = new URL(endpoint)
  url.pathname = endpoint.pathname.replace(/\/$/, '') + path
  const allHeaders = {
    accept: 'application/json',
    'content-type': 'application/json',
    'user-agent': 'workbase',
    ...headers,
    ...(credential === undefined ? {} : { authorization: `Bearer ${credential}` }),
  }
  return async (body, signal) => {
    try {
      return await outbound(url, { method: 'POST', headers: allHeaders, body, signal })
    } catch (error) {
      const refusal = endpointRefusalIn(error)
      if (!refusal) throw error
      throw new ProviderFailure(`cannot be called: ${refusal.message}`, { hint: refusal.hint }, {}, refusal)
    }
  }
}

/** Thrown if the provider responds with an error. */
export class ErrorResponse extends Error {
  override readonly name = 'ErrorResponse'

  constructor(
    readonly status: number,
    readonly providerReason: ProviderReason,
    /** Pause before a retry that the provider requests, in milliseconds; undefined if it requests none. */
    readonly pauseMs: number | undefined,
    /** Start of the body, without the credential. */
    text: string,
  ) {
    super(`${status} ${text}`)
  }

  /** Returns true if a repeated request can succeed. */
  get isTransient(): boolean {
    const { status, providerReason } = this
    return (
      (status === 408 || status === 409 || status === 429 || status >= 500) &&
      !isFinalRefusal(status, providerReason)
    )
  }
}

/** Thrown if a response with a success status starts like JSON, but is truncated or damaged. A proxy can cause this. */
export class IncompleteJson extends Error {
  override readonly name = 'IncompleteJson'

  /** @param bytes  length of the response */
  constructor(readonly bytes: number) {
    super(`the JSON of a response of ${bytes} bytes is incomplete`)
  }
}

/**
 * Reads a whole response, and returns its parsed JSON.
 *
 * @throws ErrorResponse    the response is an error
 * @throws IncompleteJson   the JSON of the response is truncated or damaged
 * @throws ProviderFailure  the response is not JSON, or too large
 * @throws any error of the connection
 */
export async function readJsonResponse(
  response: OutboundResponse,
  credential: string | undefined,
  bytesMax = wholeResponseBytesMax,
): Promise<unknown> {
  const { status, headers } = response
  const body = (await readBody(response.body, bytesMax).catch(throwUnreadable)).toString()
  if (status >= 300) throw errorResponse(status, body, headers, credential)
  const parsed = parseJson(body)
  if (parsed === undefined && /^\s*[[{]/.test(body)) throw new IncompleteJson(Buffer.byteLength(body))
  if (parsed === undefined) throw unreadableResponse(new SyntaxError('the response is not JSON'))
  const embeddedStatus = body.length > errorCharsMax ? undefined : statusOf(errorIn(parsed))
  if (embeddedStatus === undefined) return parsed
  throw errorResponse(embeddedStatus, body, headers, credential)
}

function throwUnreadable(error: unknown): never {
  throw error instanceof BodyTooLong ? unreadableResponse(error) : error
}

/** Returns the failure for a response that is too large, or is not the expected JSON. */
export function unreadableResponse(cause: unknown): ProviderFailure {
  const problem = cause instanceof BodyTooLong ? 'is too large' : 'cannot be read'
  return new ProviderFailure(`sent a response that ${problem}`, {}, {}, cause)
}

/** Creates the error for a response that has an error status, or that contains an error instead of an answer. */
export function errorResponse(
  status: number,
  text: string,
  headers: OutboundResponse['headers'],
  credential: string | undefined,
): ErrorResponse {
  const redacted = withoutSecret(text, credential)
  const parsed = parseJson(redacted)
  const providerReason = parsed === undefined ? {} : providerReasonIn(errorIn(parsed) ?? parsed)
  return new ErrorResponse(
    status,
    providerReason,
    requestedDelayMs(headers),
    redacted.slice(0, searchedCharsMax),
  )
}

/**
 * Removes the credential from a text that can be logged. Some providers repeat a rejected key in their response.
 */
function withoutSecret(text: string, credential: string | undefined): string {
  return credential === undefined ? text : text.replaceAll(credential, '[redacted]')
}
