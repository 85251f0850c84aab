import type { Clock } from '../../base/clock.ts'
import { TimedOut, within } from '../../base/deadline.ts'
import { readWhole, TooLong } from '../../base/read-whole.ts'

/** Timeout of a request to the provider, in milliseconds. */
const answerMsMax = 10_000
/**
 * Maximum size of a response, in bytes. Responses can include tokens with hundreds of groups, or keys with
 * certificates.
 */
const answerBytesMax = 1_048_576
/** Statuses for which a `Response` must not have a body. */
const bodiless: readonly number[] = [204, 205, 304]

/** The provider did not respond, or sent an invalid response. `why` is a message of this runtime. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer'

  constructor(readonly why: string) {
    super(why)
  }
}

/** Sends a request to the provider. Of the response headers, only the content type is kept. */
export type Ask = (url: string | URL, request: RequestInit) => Promise<Response>

/**
 * Returns a `fetch` that times out after ten seconds, reads at most 1 MiB, follows no redirect, and treats
 * 5xx as a failure. It throws only `NoAnswer`.
 */
export function boundedFetch({ fetch, clock }: { fetch: typeof globalThis.fetch; clock: Clock }): Ask {
  return async (url, request) => {
    try {
      return await within(clock, answerMsMax, async signal =>
        whole(await fetch(url, { ...request, redirect: 'manual', signal })),
      )
    } catch (error) {
      if (error instanceof NoAnswer) throw error
      throw new NoAnswer(reason(error))
    }
  }
}

async function whole(answer: Response): Promise<Response> {
  const { status, headers } = answer
  if (status >= 500) {
    await answer.body?.cancel()
    throw new NoAnswer(`it answered with status ${status}`)
  }
  const body = await readWhole(answer.body, answerBytesMax)
  const type = headers.get('content-type')
  return new Response(bodiless.includes(status) ? null : body, {
    status,
    headers: type === null ? {} : { 'content-type': type },
  })
}

function reason(error: unknown): string {
  if (error instanceof TimedOut) return `it did not answer within ${answerMsMax / 1_000} seconds`
  if (error instanceof TooLong) return `it answered with more than ${answerBytesMax} bytes`
  const code = String(((error as Error).cause as { code?: unknown } | undefined)?.code)
  if (/^(?:ENOTFOUND|EAI_AGAIN)$/.test(code)) return 'its name cannot be resolved'
  if (code === 'ECONNREFUSED') return 'it refused the connection'
  if (/CERT|TLS|SSL/.test(code)) return 'its certificate is not accepted'
  return 'it cannot be reached'
}
