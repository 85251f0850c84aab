import { setTimeout as pause } from 'node:timers/promises'
import { withJitter } from '../../base/jitter.ts'
import { WbError } from '../../contract/errors.ts'

/** Pause in milliseconds before a request is repeated, if the runtime requests none. */
const pauseMsDefault = 2_000
/** Maximum pause in milliseconds before a request is repeated. */
const pauseMsMax = 60_000
/** Makes pauses longer, so that they are not shorter than requested with jitter of up to a quarter. */
const jitterReserve = 4 / 3
/** Time in milliseconds after which a request that the runtime still rejects fails. */
const waitMsMax = 30 * 60_000

/**
 * Sends a request, and repeats it while the runtime has no capacity for it. Waits as long as the runtime requests, plus jitter of up to a third.
 *
 * @throws WbError overloaded  the runtime had no capacity for 30 minutes
 * @throws any other error of `send`, and the reason of the signal
 */
export async function waitForCapacity<T>(signal: AbortSignal, send: () => Promise<T>): Promise<T> {
  const endsMs = performance.now() + waitMsMax
  for (;;) {
    try {
      return await send()
    } catch (error) {
      if (!(error instanceof WbError) || error.code !== 'overloaded') throw error
      const { retryAfterMs = pauseMsDefault } = error.facts as { retryAfterMs?: number }
      const waitMs = withJitter(Math.min(retryAfterMs, pauseMsMax) * jitterReserve)
      if (performance.now() + waitMs > endsMs) throw error
      await pause(waitMs, undefined, { signal }).catch(() => signal.throwIfAborted())
    }
  }
}

/**
 * Streams a response like {@link waitForCapacity}: opens it again while the runtime has no capacity. An error after the first line
 * is thrown.
 */
export async function* streamWithCapacity<T>(
  signal: AbortSignal,
  open: () => AsyncGenerator<T>,
): AsyncGenerator<T> {
  const { lines, first } = await waitForCapacity(signal, async () => {
    const opened = open()
    return { lines: opened, first: await opened.next() }
  })
  try {
    if (!first.done) yield first.value
    yield* lines
  } finally {
    await lines.return(undefined)
  }
}
