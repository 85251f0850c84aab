import { readWhole } from '../../base/read-whole.ts'
import { refusalIn } from '../guard.ts'
import { type Outbound, type OutboundAnswer, retryAfterMs } from '../outbound.ts'
import { ProviderFailure } from './failure.ts'

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
  const headers = { 'content-type': 'application/json', ...retryHeaders(answer.headers) }
  const { status } = answer
  if (body.length === 0) return new Response(null, { status, headers })
  const text = status < 300 ? new Uint8Array(body) : withoutSecret(body.toString(), credential)
  return new Response(text, { status, headers })
}

/** A refusal goes to the log as it came, and some providers repeat the key that they refuse. */
function withoutSecret(refusal: string, credential: string | undefined): string {
  return credential === undefined ? refusal : refusal.replaceAll(credential, '[redacted]')
}

/** The pause that a provider asks for, in the words that the SDK reads, within our bound. */
function retryHeaders(headers: OutboundAnswer['headers']): Record<string, string> {
  const waitMs = retryAfterMs(headers)
  if (waitMs === undefined) return {}
  return waitMs > retryAfterMsMax ? { 'x-should-retry': 'false' } : { 'retry-after-ms': String(waitMs) }
}
