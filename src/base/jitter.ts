/**
 * Returns a duration that is up to a quarter shorter, at random. Spreads the retries of clients that failed at the same
 * time.
 */
export function withJitter(durationMs: number): number {
  return durationMs * (1 - Math.random() * 0.25)
}
