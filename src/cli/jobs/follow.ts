import { pause } from '../../base/pause.ts'
import { Unreachable } from '../../client/unreachable.ts'
import { WbError } from '../../contract/errors.ts'

const waitFirstMs = 500
const waitMaxMs = 30_000

/** What is followed: events whose ids say from where to go on. */
interface Numbered {
  readonly id: string
}

export interface Following<E> {
  /** The event to begin after; without it, what comes from now on. */
  after: string | undefined
  /** Open the stream after an event, or from now on. */
  open(after: string | undefined): AsyncIterable<E>
  /** Told when the stream broke, and after how long it is opened again. */
  onLost(waitMs: number): void
  /** Told when the first event came after the stream broke. */
  onFound(): void
  /** Ends it. */
  signal: AbortSignal
  /** Stands for time in tests. */
  pause?: (ms: number, signal: AbortSignal) => Promise<unknown>
}

/**
 * Events as they come, across connections that break: each is opened again from the last event on, after a time that
 * doubles while none comes.
 *
 * @throws WbError  the runtime refuses, and will again
 */
export async function* follow<E extends Numbered>(following: Following<E>): AsyncGenerator<E> {
  const { open, onLost, onFound, signal, pause: rest = pause } = following
  let { after } = following
  let waitMs = waitFirstMs
  let isLost = false
  while (!signal.aborted) {
    try {
      for await (const event of open(after)) {
        after = event.id
        if (isLost) onFound()
        isLost = false
        waitMs = waitFirstMs
        yield event
      }
    } catch (error) {
      if (!signal.aborted && !isPassing(error)) throw error
    }
    if (signal.aborted) return
    onLost(waitMs)
    isLost = true
    await rest(waitMs, signal)
    waitMs = Math.min(2 * waitMs, waitMaxMs)
  }
}

function isPassing(error: unknown): boolean {
  if (error instanceof WbError) return error.status === 429 || error.status >= 500
  return error instanceof Unreachable
}
