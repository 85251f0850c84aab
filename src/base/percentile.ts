/**
 * Returns the smallest value that is not below the given share of all values (nearest rank).
 *
 * @param sorted  values in ascending order; at least one
 * @param share   above 0, at most 1
 */
export function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.ceil(share * sorted.length) - 1]!
}
