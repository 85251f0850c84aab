import type { Visibility } from '../storage/visibility.ts'

/**
 * Returns the visibility of all rows, for callers that manage access, and for all callers if row-level access is
 * off. Only this function creates a `Visibility`.
 */
export function fullVisibility(): Visibility {
  return { principals: 'all' } as Visibility
}
