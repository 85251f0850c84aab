import type { Clock } from './clock.ts'

/** Error for work that exceeded its time limit. */
export class TimedOut extends Error {
  override readonly name = 'TimedOut'

  constructor(timeoutMs: number) {
    super(`no answer within ${timeoutMs} ms`)
  }
}

/**
 * Aborts a controller when a signal fires, with its reason; at once if it has fired already. The signal keeps
 * the controller alive. The result of `AbortSignal.any` can be garbage collected before it fires.
 *
 * @returns a function that removes the connection
 */
export function abortWith(controller: AbortController, signal: AbortSignal | null | undefined): () => void {
  const abort = () => controller.abort(signal?.reason)
  signal?.addEventListener('abort', abort)
  if (signal?.aborted) abort()
  return () => signal?.removeEventListener('abort', abort)
}

/**
 * Waits for work, with a time limit.
 *
 * @param work   its signal fires when the caller stops waiting; its result is then ignored
 * @param until  also aborts the work, which then decides how to end
 * @throws TimedOut  the work took longer
 */
export async function withTimeout<T>(
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
 * Waits for work until a signal fires. The work then continues without a caller.
 *
 * @throws the reason of the signal
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
