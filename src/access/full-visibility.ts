import type { Visibility } from '../storage/visibility.ts'

/**
 * Returns the visibility of every row, for callers that manage access, or if row-level access is off. Only
 * this function creates a `Visibility`.
 */
export function fullVisibility(): Visibility {
  return { principals: 'all' } as Visibility
}
