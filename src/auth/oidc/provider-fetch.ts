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
const bodilessStatuses: readonly number[] = [204, 205, 304]

/**
 * Thrown when the provider does not respond, or its response is invalid. `reason` describes the provider as "it", and
 * follows a colon in messages.
 */
export class ProviderUnavailable extends Error {
  override readonly name = 'ProviderUnavailable'

  constructor(readonly reason: string) {
    super(reason)
  }
}

/** Sends a request to the provider. Removes all headers from the response except the content type. */
export type ProviderFetch = (url: string | URL, request: RequestInit) => Promise<Response>

/**
 * Returns a `fetch` function that times out after ten seconds, reads at most 1 MiB, and does not follow redirects. It
 * throws only `ProviderUnavailable`, also for a 5xx status.
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

async function bufferResponse(response: Response): Promise<Response> {
  const { status, headers } = response
  if (status >= 500) {
    await response.body?.cancel()
    throw new ProviderUnavailable(`it responded with status ${status}`)
  }
  const body = await readBody(response.body, responseBytesMax)
  const type = headers.get('content-type')
  return new Response(bodilessStatuses.includes(status) ? null : body, {
    status,
    headers: type === null ? {} : { 'content-type': type },
  })
}

function connectionReason(error: unknown): string {
  if (error instanceof TimedOut) return `it did not respond within ${responseTimeoutMs / 1_000} seconds`
  if (error instanceof BodyTooLong) return `its response has more than ${responseBytesMax} bytes`
  const code = String(((error as Error).cause as { code?: unknown } | undefined)?.code)
  if (/^(?:ENOTFOUND|EAI_AGAIN)$/.test(code)) return 'its host name cannot be resolved'
  if (code === 'ECONNREFUSED') return 'it refused the connection'
  if (/CERT|TLS|SSL/.test(code)) return 'its certificate is not accepted'
  return 'it cannot be reached'
}
