import type { Clock } from '../../base/clock.ts'
import { TimedOut, withTimeout } from '../../base/deadline.ts'
import { BodyTooLong, readBody } from '../../base/read-body.ts'

/** Timeout of a request to the provider, in milliseconds. */
const responseTimeoutMs = 10_000
/**
 * Maximum size of a response, in bytes. Responses can include tokens with hundreds of groups, or keys with
 * certificates.
 */
const responseBytesMax = 1_048_576
/** Statuses for which a `Response` must not have a body. */
const bodiless: readonly number[] = [204, 205, 304]

/** The provider did not respond, or sent an invalid response. `why` is a message of this runtime. */
export class ProviderUnavailable extends Error {
  override readonly name = 'NoAnswer'

  constructor(readonly reason: string) {
    super(reason)
  }
}

/** Sends a request to the provider. Of the response headers, only the content type is kept. */
export type ProviderFetch = (url: string | URL, request: RequestInit) => Promise<Response>

/**
 * Returns a `fetch` that times out after ten seconds, reads at most 1 MiB, follows no redirect, and treats
 * 5xx as a failure. It throws only `ProviderUnavailable`.
 */
export function createProviderFetch({
  fetch,
  clock,
}: {
  fetch: typeof globalThis.fetch
  clock: Clock
}): ProviderFetch {
  return async (url, request) => {
    try {
      return await withTimeout(clock, responseTimeoutMs, async signal =>
        bufferResponse(await fetch(url, { ...request, redirect: 'manual', signal })),
      )
    } catch (error) {
      if (error instanceof ProviderUnavailable) throw error
      throw new ProviderUnavailable(connectionReason(error))
    }
  }
}

async function bufferResponse(answer: Response): Promise<Response> {
  const { status, headers } = answer
  if (status >= 500) {
    await answer.body?.cancel()
    throw new ProviderUnavailable(`it answered with status ${status}`)
  }
  const body = await readBody(answer.body, responseBytesMax)
  const type = headers.get('content-type')
  return new Response(bodiless.includes(status) ? null : body, {
    status,
    headers: type === null ? {} : { 'content-type': type },
  })
}

function connectionReason(error: unknown): string {
  if (error instanceof TimedOut) return `it did not answer within ${responseTimeoutMs / 1_000} seconds`
  if (error instanceof BodyTooLong) return `it answered with more than ${responseBytesMax} bytes`
  const code = String(((error as Error).cause as { code?: unknown } | undefined)?.code)
  if (/^(?:ENOTFOUND|EAI_AGAIN)$/.test(code)) return 'its name cannot be resolved'
  if (code === 'ECONNREFUSED') return 'it refused the connection'
  if (/CERT|TLS|SSL/.test(code)) return 'its certificate is not accepted'
  return 'it cannot be reached'
}
