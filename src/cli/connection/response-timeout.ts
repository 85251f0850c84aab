import { type Clock, systemClock } from '../../base/clock.ts'
import { abortWith } from '../../base/deadline.ts'
import type { Fetch } from '../../client/fetch.ts'
import { Unreachable } from '../../client/unreachable.ts'

/** Maximum time for a whole response, in milliseconds. */
const responseTimeoutMs = 30_000

/**
 * Limits the total time of sign-in requests. If a request and the reading of its response take longer than
 * {@link responseTimeoutMs}, they fail with Unreachable.
 */
export function withResponseTimeout(fetch: Fetch, clock: Clock = systemClock): Fetch {
  return async (url, request) => {
    const timeout = new AbortController()
    const detach = abortWith(timeout, request.signal)
    const cancel = clock.after(responseTimeoutMs, () => timeout.abort(timeoutError(url)))
    const cleanUp = () => {
      cancel()
      detach()
    }
    try {
      const response = await fetch(url, { ...request, signal: timeout.signal })
      const { status, headers, body } = response
      return { url: response.url, status, headers, body, text: () => response.text().finally(cleanUp) }
    } catch (error) {
      cleanUp()
      throw error
    }
  }
}

function timeoutError(url: string): Unreachable {
  const { origin, pathname } = new URL(url)
  return new Unreachable(
    `${origin} did not respond to ${pathname} within ${responseTimeoutMs / 1_000} s`,
    'Try again.',
  )
}
