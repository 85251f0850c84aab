/** Returns a duration that is up to a quarter shorter, at random. Clients that failed together retry apart. */
export function withJitter(durationMs: number): number {
  return durationMs * (1 - Math.random() * 0.25)
}
