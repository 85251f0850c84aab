import type { Clock } from './clock.ts'

/** Something took longer than it may. */
export class TimedOut extends Error {
  override readonly name = 'TimedOut'

  constructor(timeoutMs: number) {
    super(`no answer within ${timeoutMs} ms`)
  }
}

/**
 * Have a controller abort when a signal fires, for its reason; at once where it has fired. The signal holds the
 * controller: one of `AbortSignal.any` may be collected before it fires.
 *
 * @returns undoes it
 */
export function abortWith(controller: AbortController, signal: AbortSignal | null | undefined): () => void {
  const abort = () => controller.abort(signal?.reason)
  signal?.addEventListener('abort', abort)
  if (signal?.aborted) abort()
  return () => signal?.removeEventListener('abort', abort)
}

/**
 * Wait for some work, but not for ever.
 *
 * @param work   its signal fires when nobody waits any longer; work that does not listen to it goes on unheard
 * @param until  fires the signal of the work too, which then ends as it likes
 * @throws TimedOut  it took longer
 */
export async function within<T>(
  clock: Clock,
  timeoutMs: number,
  work: (signal: AbortSignal) => Promise<T>,
  until?: AbortSignal,
): Promise<T> {
  const giveUp = new AbortController()
  const letGo = abortWith(giveUp, until)
  let cancel = () => {}
  const late = new Promise<never>((_, reject) => {
    cancel = clock.after(timeoutMs, () => {
      const error = new TimedOut(timeoutMs)
      reject(error)
      giveUp.abort(error)
    })
  })
  try {
    return await Promise.race([work(giveUp.signal), late])
  } finally {
    cancel()
    letGo()
  }
}

/**
 * Wait for some work, or until the signal fires; the work then goes on unheard.
 *
 * @throws the signal's reason
 */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let leave = () => {}
  const gone = new Promise<never>((_, reject) => {
    leave = () => reject(signal.reason)
  })
  signal.addEventListener('abort', leave)
  if (signal.aborted) leave()
  try {
    return await Promise.race([work, gone])
  } finally {
    signal.removeEventListener('abort', leave)
  }
}
