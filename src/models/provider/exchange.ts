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

/** Maximum size of one answer, whole or streamed. */
export const providerAnswerBytesMax = 64_000_000

/**
 * Maximum length of an answer that can be an error with a success status, in UTF-16 units. A longer one is a
 * partial answer.
 */
const errorCharsMax = 16_384

/** Endpoint and credential of requests. */
export interface RequestTarget {
  readonly endpoint: URL
  readonly credential: string | undefined
  /** Headers in addition to those of every request. */
  readonly headers?: Readonly<Record<string, string>>
}

/**
 * Sends the JSON text of a request to the provider.
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
  const sent = {
    accept: 'application/json',
    'content-type': 'application/json',
    'user-agent': 'workbase',
    ...headers,
    ...(credential === undefined ? {} : { authorization: `Bearer ${credential}` }),
  }
  return async (body, signal) => {
    try {
      return await outbound(url, { method: 'POST', headers: sent, body, signal })
    } catch (error) {
      const refusal = endpointRefusalIn(error)
      if (!refusal) throw error
      throw new ProviderFailure(`cannot be called: ${refusal.message}`, { hint: refusal.hint }, {}, refusal)
    }
  }
}

/** A response of a provider that is an error. */
export class ErrorResponse extends Error {
  override readonly name = 'ErrorResponse'

  constructor(
    readonly status: number,
    readonly said: ProviderReason,
    /** Pause that the provider requests before a retry, in milliseconds; undefined if it requests none. */
    readonly pauseMs: number | undefined,
    /** Start of the body, without the credential. */
    text: string,
  ) {
    super(`${status} ${text}`)
  }

  /** Returns true if repeating the request can help. */
  get isTransient(): boolean {
    const { status, said } = this
    return (
      (status === 408 || status === 409 || status === 429 || status >= 500) && !isFinalRefusal(status, said)
    )
  }
}

/**
 * Reads a whole response.
 *
 * @returns its JSON
 * @throws ErrorResponse
 * @throws ProviderFailure  the response is not JSON, or too large
 * @throws any error of the connection
 */
export async function readJsonAnswer(
  answer: OutboundResponse,
  credential: string | undefined,
): Promise<unknown> {
  const { status, headers } = answer
  const body = (await readBody(answer.body, providerAnswerBytesMax).catch(throwUnreadable)).toString()
  if (status >= 300) throw errorResponse(status, body, headers, credential)
  const parsed = parseJson(body)
  if (parsed === undefined) throw unreadableAnswer(new SyntaxError('the answer is not JSON'))
  const lateStatus = body.length > errorCharsMax ? undefined : statusOf(errorIn(parsed))
  if (lateStatus === undefined) return parsed
  throw errorResponse(lateStatus, body, headers, credential)
}

function throwUnreadable(error: unknown): never {
  throw error instanceof BodyTooLong ? unreadableAnswer(error) : error
}

/** Returns the failure of an answer that is not the expected JSON, or too large. */
export function unreadableAnswer(cause: unknown): ProviderFailure {
  const what = cause instanceof BodyTooLong ? 'is too large' : 'cannot be read'
  return new ProviderFailure(`sent an answer that ${what}`, {}, {}, cause)
}

/** Returns the error for a response with an error status, or with an error instead of an answer. */
export function errorResponse(
  status: number,
  text: string,
  headers: OutboundResponse['headers'],
  credential: string | undefined,
): ErrorResponse {
  const shown = withoutSecret(text, credential)
  const parsed = parseJson(shown)
  const said = parsed === undefined ? {} : providerReasonIn(errorIn(parsed) ?? parsed)
  return new ErrorResponse(status, said, requestedDelayMs(headers), shown.slice(0, searchedCharsMax))
}

/**
 * Removes the credential from a text. Some providers repeat the key that they refuse, and causes of failures
 * are logged.
 */
function withoutSecret(text: string, credential: string | undefined): string {
  return credential === undefined ? text : text.replaceAll(credential, '[redacted]')
}
