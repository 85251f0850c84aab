import { parseJson } from '../../base/parse-json.ts'
import { readWhole } from '../../base/read-whole.ts'
import { refusalIn } from '../guard.ts'
import { type Outbound, type OutboundAnswer, retryAfterMs } from '../outbound.ts'
import { ProviderFailure, reasonIn, saidCharsMax } from './failure.ts'
import { errorIn, isFinal, statusOf } from './refusal.ts'

/** Of one answer, whole or in pieces. */
export const answerBytesMax = 64_000_000
/** A provider that asks for a longer pause is not asked again. */
const retryAfterMsMax = 20_000

/** Where requests go, and with what. */
export interface Calls {
  readonly endpoint: URL
  readonly credential: string | undefined
  /** Beside those that every request has. */
  readonly headers?: Readonly<Record<string, string>>
}

/** Sends a request that the SDK has made. */
export type Send = (input: unknown, init: RequestInit | undefined) => Promise<OutboundAnswer>

/**
 * What sends requests of the SDK. Only our own headers go out: the SDK's describe this machine, and some come from the
 * environment.
 *
 * @param tell  hears at once of a dial that is refused: the SDK would try it again, and hide the reason
 */
export function sender(
  { endpoint, credential, headers }: Calls,
  outbound: Outbound,
  tell: (refusal: ProviderFailure) => void,
): Send {
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
      const refusal = refusalIn(error)
      if (refusal)
        tell(
          new ProviderFailure(`cannot be dialled: ${refusal.message}`, { hint: refusal.hint }, {}, refusal),
        )
      throw error
    }
  }
}

/** A whole answer for the SDK, so that its time-out and its retries cover the body too. */
export async function whole(answer: OutboundAnswer, credential: string | undefined): Promise<Response> {
  const body = await readWhole(answer.body, answerBytesMax)
  const { status, headers } = answer
  if (body.length === 0) return new Response(null, { status, headers: { ...json, ...retryHeaders(headers) } })
  if (status < 300)
    return (
      lateRefusal(body, answer, credential) ?? new Response(new Uint8Array(body), { status, headers: json })
    )
  return refusal(status, body.toString(), headers, credential)
}

const json = { 'content-type': 'application/json' }
/** Maximum length of a response that is searched for an error, in bytes, to avoid parsing long ones twice. */
const errorBytesMax = 16_384

/** Returns the refusal that a provider sent with a status of success; undefined if there is none. */
function lateRefusal(
  body: Buffer,
  { headers }: OutboundAnswer,
  credential: string | undefined,
): Response | undefined {
  if (body.length > errorBytesMax || !body.includes('"error"')) return undefined
  const parsed = parseJson(body.toString())
  const status = statusOf(errorIn(parsed))
  return status === undefined ? undefined : refusal(status, JSON.stringify(parsed), headers, credential)
}

/** Returns an error response in the format of OpenAI, which the SDK reads. */
export function refusal(
  status: number,
  text: string,
  headers: OutboundAnswer['headers'],
  credential: string | undefined,
): Response {
  const shown = withoutSecret(text, credential)
  const parsed = parseJson(shown)
  const said = reasonIn(parsed === undefined ? undefined : (errorIn(parsed) ?? parsed))
  const retry = isFinal(status, said) ? { 'x-should-retry': 'false' } : retryHeaders(headers)
  // The failure holds the body as long as it is remembered.
  const body = parsed === undefined ? shown.slice(0, saidCharsMax) : JSON.stringify({ error: said })
  return new Response(body, { status, headers: { ...json, ...retry } })
}

/** Some providers repeat the key that they refuse, and the cause of a failure goes to the log. */
function withoutSecret(text: string, credential: string | undefined): string {
  return credential === undefined ? text : text.replaceAll(credential, '[redacted]')
}

/** The pause that a provider asks for, in the words that the SDK reads, within our bound. */
function retryHeaders(headers: OutboundAnswer['headers']): Record<string, string> {
  const waitMs = retryAfterMs(headers)
  if (waitMs === undefined) return {}
  return waitMs > retryAfterMsMax ? { 'x-should-retry': 'false' } : { 'retry-after-ms': String(waitMs) }
}
