/** Formats a duration: `850 ms` below one second, otherwise `1.5 s`. */
export function formatPreciseDuration(ms: number): string {
  return ms < 1_000 ? `${Math.round(ms)} ms` : `${(ms / 1_000).toFixed(1)} s`
}
