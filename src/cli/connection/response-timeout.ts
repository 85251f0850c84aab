import { type Clock, systemClock } from '../../base/clock.ts'
import { abortWith } from '../../base/deadline.ts'
import type { Fetch } from '../../client/fetch.ts'
import { Unreachable } from '../../client/unreachable.ts'

/** Maximum time for a whole response, in milliseconds. */
const answerTimeoutMs = 30_000

/**
 * Limits the total time of requests for sign-in. Such a request, and the text of its response, throw
 * Unreachable after {@link answerTimeoutMs}.
 */
export function withResponseTimeout(fetch: Fetch, clock: Clock = systemClock): Fetch {
  return async (url, request) => {
    const giveUp = new AbortController()
    const letGo = abortWith(giveUp, request.signal)
    const cancel = clock.after(answerTimeoutMs, () => giveUp.abort(late(url)))
    const end = () => {
      cancel()
      letGo()
    }
    try {
      const answer = await fetch(url, { ...request, signal: giveUp.signal })
      const { status, headers, body } = answer
      return { url: answer.url, status, headers, body, text: () => answer.text().finally(end) }
    } catch (error) {
      end()
      throw error
    }
  }
}

function late(url: string): Unreachable {
  const { origin, pathname } = new URL(url)
  return new Unreachable(
    `${origin} did not respond to ${pathname} within ${answerTimeoutMs / 1_000} s`,
    'Try again.',
  )
}
