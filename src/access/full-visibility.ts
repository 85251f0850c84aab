import type { Visibility } from '../storage/visibility.ts'

/**
 * Returns the visibility of all rows. Use it for callers that manage access and, if row-level access is disabled, for
 * all callers. Only this function creates a `Visibility`.
 */
export function fullVisibility(): Visibility {
  return { principals: 'all' } as Visibility
}
