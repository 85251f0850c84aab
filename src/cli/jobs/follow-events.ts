import { pause } from '../../base/pause.ts'
import { isTemporaryFailure } from '../is-temporary-failure.ts'

const retryFirstMs = 500
const retryMaxMs = 30_000

/** An event with an ID, after which a stream can resume. */
interface IdentifiedEvent {
  readonly id: string
}

export interface FollowOptions<E> {
  /** ID of the last event received. If undefined, the stream starts with new events. */
  after: string | undefined
  /** Opens the stream of events after the event with this ID. If undefined, the stream starts with new events. */
  open(after: string | undefined): AsyncIterable<E>
  /** Called when the connection is lost, with the time until the next attempt. */
  onLost(waitMs: number): void
  /** Called on the first event after a lost connection. */
  onReconnected(): void
  /** Stops following. */
  signal: AbortSignal
  /** Replaces the wait in tests. */
  pause?: (ms: number, signal: AbortSignal) => Promise<unknown>
}

/**
 * Yields events. When the connection is lost, reconnects and continues after the last event received. The delay
 * between attempts doubles until an event arrives, up to {@link retryMaxMs}.
 *
 * @throws WbError  when the runtime responds with an error that is not temporary
 */
export async function* followEvents<E extends IdentifiedEvent>(options: FollowOptions<E>): AsyncGenerator<E> {
  const { open, onLost, onReconnected, signal, pause: wait = pause } = options
  let { after } = options
  let waitMs = retryFirstMs
  let isLost = false
  while (!signal.aborted) {
    try {
      for await (const event of open(after)) {
        after = event.id
        if (isLost) onReconnected()
        isLost = false
        waitMs = retryFirstMs
        yield event
      }
    } catch (error) {
      if (!signal.aborted && !isTemporaryFailure(error)) throw error
    }
    if (signal.aborted) return
    onLost(waitMs)
    isLost = true
    await wait(waitMs, signal)
    waitMs = Math.min(2 * waitMs, retryMaxMs)
  }
}
