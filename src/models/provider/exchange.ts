import { parseJson } from '../../base/parse-json.ts'
import { readWhole, TooLong } from '../../base/read-whole.ts'
import { refusalIn } from '../guard.ts'
import { type Outbound, type OutboundAnswer, retryAfterMs } from '../outbound.ts'
import { ProviderFailure, type ProviderReason, reasonIn, saidCharsMax } from './failure.ts'
import { errorIn, isFinal, statusOf } from './refusal.ts'

/** Maximum size of one answer, whole or streamed. */
export const answerBytesMax = 64_000_000

/**
 * Maximum length of an answer that can be an error with a success status, in UTF-16 units. A longer one is a
 * partial answer.
 */
const errorCharsMax = 16_384

/** Endpoint and credential of requests. */
export interface Calls {
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
export type Send = (body: string, signal: AbortSignal) => Promise<OutboundAnswer>

/** Returns a function that sends requests to a path below an endpoint. */
export function sender({ endpoint, credential, headers }: Calls, path: string, outbound: Outbound): Send {
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
      const refusal = refusalIn(error)
      if (!refusal) throw error
      throw new ProviderFailure(`cannot be dialled: ${refusal.message}`, { hint: refusal.hint }, {}, refusal)
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
    return (status === 408 || status === 409 || status === 429 || status >= 500) && !isFinal(status, said)
  }
}

/**
 * Reads a whole response.
 *
 * @returns its JSON
 * @throws ErrorResponse
 * @throws ProviderFailure  the response is not JSON, or too long
 * @throws any error of the connection
 */
export async function whole(answer: OutboundAnswer, credential: string | undefined): Promise<unknown> {
  const { status, headers } = answer
  const body = (await readWhole(answer.body, answerBytesMax).catch(unlessTooLong)).toString()
  if (status >= 300) throw errorResponse(status, body, headers, credential)
  const parsed = parseJson(body)
  if (parsed === undefined) throw unreadable(new SyntaxError('the answer is not JSON'))
  const lateStatus = body.length > errorCharsMax ? undefined : statusOf(errorIn(parsed))
  if (lateStatus === undefined) return parsed
  throw errorResponse(lateStatus, body, headers, credential)
}

function unlessTooLong(error: unknown): never {
  throw error instanceof TooLong ? unreadable(error) : error
}

/** Returns the failure of an answer that cannot be read. */
export function unreadable(cause: unknown): ProviderFailure {
  return new ProviderFailure('sent an answer that cannot be read', {}, {}, cause)
}

/** Returns the error for a response with an error status, or with an error instead of an answer. */
export function errorResponse(
  status: number,
  text: string,
  headers: OutboundAnswer['headers'],
  credential: string | undefined,
): ErrorResponse {
  const shown = withoutSecret(text, credential)
  const parsed = parseJson(shown)
  const said = parsed === undefined ? {} : reasonIn(errorIn(parsed) ?? parsed)
  return new ErrorResponse(status, said, retryAfterMs(headers), shown.slice(0, saidCharsMax))
}

/**
 * Removes the credential from a text. Some providers repeat the key that they refuse, and causes of failures
 * are logged.
 */
function withoutSecret(text: string, credential: string | undefined): string {
  return credential === undefined ? text : text.replaceAll(credential, '[redacted]')
}
