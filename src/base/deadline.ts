import type { Clock } from './clock.ts'

/** Error for work that exceeded its time limit. */
export class TimedOut extends Error {
  override readonly name = 'TimedOut'

  constructor(timeoutMs: number) {
    super(`no response within ${timeoutMs} ms`)
  }
}

/**
 * Aborts a controller when a signal fires (immediately, if it has already fired), with the reason of the signal. Unlike
 * the result of `AbortSignal.any`, the controller cannot be garbage collected before the signal fires.
 *
 * @returns a function that removes the listener from the signal
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
 * @param work    receives a signal that fires at the time limit; a later result is ignored
 * @param signal  also aborts the work, but this function still waits for the work to end
 * @throws TimedOut  the work took longer
 */
export async function withTimeout<T>(
  clock: Clock,
  timeoutMs: number,
  work: (signal: AbortSignal) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  const abortWork = new AbortController()
  const unlink = abortWith(abortWork, signal)
  let cancel = () => {}
  const timeout = new Promise<never>((_, reject) => {
    cancel = clock.after(timeoutMs, () => {
      const error = new TimedOut(timeoutMs)
      reject(error)
      abortWork.abort(error)
    })
  })
  try {
    return await Promise.race([work(abortWork.signal), timeout])
  } finally {
    cancel()
    unlink()
  }
}

/**
 * Waits for work until a signal fires. The signal does not stop the work.
 *
 * @throws the reason of the signal
 */
export async function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let rejectWithReason = () => {}
  const aborted = new Promise<never>((_, reject) => {
    rejectWithReason = () => reject(signal.reason)
  })
  signal.addEventListener('abort', rejectWithReason)
  if (signal.aborted) rejectWithReason()
  try {
    return await Promise.race([work, aborted])
  } finally {
    signal.removeEventListener('abort', rejectWithReason)
  }
}
