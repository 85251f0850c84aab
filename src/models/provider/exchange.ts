import { parseJson } from '../../base/parse-json.ts'
import { readBody } from '../../base/read-body.ts'
import { endpointRefusalIn } from '../endpoint-guard.ts'
import { type Outbound, type OutboundResponse, requestedDelayMs } from '../outbound.ts'
import { errorIn, isFinalRefusal, statusOf } from './known-refusals.ts'
import { ProviderFailure, providerReasonIn, searchedCharsMax } from './provider-failure.ts'

/** Maximum size of one answer, whole or streamed. */
export const providerAnswerBytesMax = 64_000_000
/** Longest pause before a retry. If a provider requests a longer one, the request is not repeated. */
const retryAfterMsMax = 20_000

/** Endpoint and credential of requests. */
export interface RequestTarget {
  readonly endpoint: URL
  readonly credential: string | undefined
  /** Headers in addition to those of every request. */
  readonly headers?: Readonly<Record<string, string>>
}

/** Sends a request of the SDK. */
export type SendRequest = (input: unknown, init: RequestInit | undefined) => Promise<OutboundResponse>

/**
 * Returns a function that sends requests of the SDK with our own headers only. Headers of the SDK describe
 * this machine, and some come from the environment.
 *
 * @param tell  called when the guard refuses a connection, because the SDK would retry and hide the reason
 */
export function createSend(
  { endpoint, credential, headers }: RequestTarget,
  outbound: Outbound,
  tell: (refusal: ProviderFailure) => void,
): SendRequest {
  return async (input, init) => {
    const url = new URL(String(input))
    if (url.origin !== endpoint.origin) throw new Error(`${url.origin} is not ${endpoint.origin}`)
    try {
      return await outbound(url, {
        method: 'POST',
        headers: {
          accept: 'application/json',
          'content-type': 'application/json',
          'user-agent': 'workbase',
          ...headers,
          ...(credential === undefined ? {} : { authorization: `Bearer ${credential}` }),
        },
        body: String(init?.body ?? ''),
        signal: init?.signal ?? null,
      })
    } catch (error) {
      const refusal = endpointRefusalIn(error)
      if (refusal)
        tell(new ProviderFailure(`cannot be called: ${refusal.message}`, { hint: refusal.hint }, {}, refusal))
      throw error
    }
  }
}

/** Returns a completely read response to the SDK, so that its timeout and retries include the body. */
export async function toSdkResponse(
  answer: OutboundResponse,
  credential: string | undefined,
): Promise<Response> {
  const body = await readBody(answer.body, providerAnswerBytesMax)
  const { status, headers } = answer
  if (body.length === 0) return new Response(null, { status, headers: { ...json, ...retryHeaders(headers) } })
  if (status < 300)
    return (
      lateErrorResponse(body, answer, credential) ??
      new Response(new Uint8Array(body), { status, headers: json })
    )
  return errorResponse(status, body.toString(), headers, credential)
}

const json = { 'content-type': 'application/json' }
/** Maximum length of a response that is searched for an error, in bytes, to avoid parsing long ones twice. */
const errorBytesMax = 16_384

/** Returns the error that a provider sent with a success status; undefined for a real success. */
function lateErrorResponse(
  body: Buffer,
  { headers }: OutboundResponse,
  credential: string | undefined,
): Response | undefined {
  if (body.length > errorBytesMax || !body.includes('"error"')) return undefined
  const parsed = parseJson(body.toString())
  const status = statusOf(errorIn(parsed))
  return status === undefined ? undefined : errorResponse(status, JSON.stringify(parsed), headers, credential)
}

/** Returns an error response in the format of OpenAI, which the SDK reads. */
export function errorResponse(
  status: number,
  text: string,
  headers: OutboundResponse['headers'],
  credential: string | undefined,
): Response {
  const shown = withoutSecret(text, credential)
  const parsed = parseJson(shown)
  const said = providerReasonIn(parsed === undefined ? undefined : (errorIn(parsed) ?? parsed))
  const retry = isFinalRefusal(status, said) ? { 'x-should-retry': 'false' } : retryHeaders(headers)
  // The failure keeps the body in memory, so the body is kept short.
  const body = parsed === undefined ? shown.slice(0, searchedCharsMax) : JSON.stringify({ error: said })
  return new Response(body, { status, headers: { ...json, ...retry } })
}

/**
 * Removes the credential from a text. Some providers repeat the key that they refuse, and causes of failures
 * are logged.
 */
function withoutSecret(text: string, credential: string | undefined): string {
  return credential === undefined ? text : text.replaceAll(credential, '[redacted]')
}

/**
 * Returns the pause that a provider requests, as headers for the SDK. Too long a pause disables the retry.
 */
function retryHeaders(headers: OutboundResponse['headers']): Record<string, string> {
  const waitMs = requestedDelayMs(headers)
  if (waitMs === undefined) return {}
  return waitMs > retryAfterMsMax ? { 'x-should-retry': 'false' } : { 'retry-after-ms': String(waitMs) }
}
