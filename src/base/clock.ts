/** Source of time, which tests can replace. */
export interface Clock {
  /** Returns the milliseconds since 1970. */
  now(): number
  /** Runs a function once after a delay. Does not keep the process alive. Returns a function that cancels the timer. */
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

/** Returns the current time as ISO 8601 in UTC with milliseconds. */
export function timestamp(clock: Clock): string {
  return new Date(clock.now()).toISOString()
}

/** Starts a monotonic timer. Returns a function that returns the elapsed milliseconds, with microsecond precision. */
export function stopwatch(): () => number {
  const startedAt = performance.now()
  return () => Math.round((performance.now() - startedAt) * 1_000) / 1_000
}
