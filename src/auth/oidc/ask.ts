import type { Clock } from '../../base/clock.ts'
import { TimedOut, within } from '../../base/deadline.ts'
import { readWhole, TooLong } from '../../base/read-whole.ts'

/** Longest that a provider may take for one answer. */
const answerMsMax = 10_000
/** Longest answer of a provider: tokens that name hundreds of groups, keys with their certificates. */
const answerBytesMax = 1_048_576
/** Answers that a `Response` takes no body with. */
const bodiless: readonly number[] = [204, 205, 304]

/** A provider did not answer, or not with what it was asked for; `why` is in our words. */
export class NoAnswer extends Error {
  override readonly name = 'NoAnswer'

  constructor(readonly why: string) {
    super(why)
  }
}

/** Asks a provider. Of the headers of an answer only its type is kept. */
export type Ask = (url: string | URL, request: RequestInit) => Promise<Response>

/**
 * A `fetch` that gives up after ten seconds, reads at most 1 MiB, follows no redirect, and takes 5xx for no answer.
 *
 * What it throws is a `NoAnswer`.
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
