import type { Clock } from './clock.ts'

/** Something took longer than it may. */
export class TimedOut extends Error {
  override readonly name = 'TimedOut'

  constructor(timeoutMs: number) {
    super(`no answer within ${timeoutMs} ms`)
  }
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
  // Held by the caller's signal: one of `AbortSignal.any` may be collected before it fires.
  const giveUp = new AbortController()
  const leave = () => giveUp.abort(until?.reason)
  if (until?.aborted) leave()
  until?.addEventListener('abort', leave)
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
    until?.removeEventListener('abort', leave)
  }
}
