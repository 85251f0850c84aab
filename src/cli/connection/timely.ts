import { type Clock, systemClock } from '../../base/clock.ts'
import { abortWith } from '../../base/deadline.ts'
import type { Fetch } from '../../client/fetch.ts'
import { Unreachable } from '../../client/unreachable.ts'

/** For a whole answer, also one that comes drop by drop. */
const answerTimeoutMs = 30_000

/**
 * Requests about signing in, which hold no command for ever: a connection that is never silent has no other bound.
 *
 * A request, and the text of its answer, throw Unreachable when it is not there in time.
 */
export function timely(fetch: Fetch, clock: Clock = systemClock): Fetch {
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
    `${origin} has not answered ${pathname} within ${answerTimeoutMs / 1_000} s`,
    'Try again.',
  )
}
