/** Returns a duration as text, in milliseconds below one second. */
export function formatPreciseDuration(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`
}
