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
 * @param work  its signal fires when nobody waits any longer; work that does not listen to it goes on unheard
 * @throws TimedOut  it took longer
 */
export async function within<T>(
  clock: Clock,
  timeoutMs: number,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const giveUp = new AbortController()
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
  }
}
