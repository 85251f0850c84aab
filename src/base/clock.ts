/** Time, as a part that a test can own. */
export interface Clock {
  /** Milliseconds since 1970. */
  now(): number
  /** Run once after a delay; the timer keeps no process alive. Returns a function that calls it off. */
  after(delayMs: number, run: () => void): () => void
}

export const systemClock: Clock = {
  now: () => Date.now(),
  after(delayMs, run) {
    const timer = setTimeout(run, delayMs)
    timer.unref()
    return () => clearTimeout(timer)
  },
}

/** ISO-8601 in UTC with milliseconds. */
export function timestamp(clock: Clock): string {
  return new Date(clock.now()).toISOString()
}

/** Starts a timer with a monotonic clock. The returned function gives the elapsed milliseconds, to the microsecond. */
export function stopwatch(): () => number {
  const startedAt = performance.now()
  return () => Math.round((performance.now() - startedAt) * 1_000) / 1_000
}
