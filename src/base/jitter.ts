/**
 * Returns a duration reduced by a random share of up to a quarter. Spreads the retries of clients that failed at the
 * same time.
 */
export function withJitter(durationMs: number): number {
  return durationMs * (1 - Math.random() * 0.25)
}
