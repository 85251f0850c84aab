declare const brand: unique symbol

/**
 * The principals whose rows a read may see. Created only in `access/full-visibility.ts`. Required by every read of
 * content, so that no search path can omit the check.
 */
export interface Visibility {
  readonly [brand]: true
  /** `all` for every row, else rows whose `visible_to` contains one of these or `*`. */
  readonly principals: 'all' | readonly string[]
}

/**
 * Rows that lexical scores are computed from: all rows of the collection, or only those that the caller may
 * see. Counts never include other collections.
 */
export type Statistics = 'collection' | 'visible'

/** Returns `collection` only for a caller who sees all rows, because scores must not reveal hidden rows. */
export function statisticsFor(visibility: Visibility): Statistics {
  return visibility.principals === 'all' ? 'collection' : 'visible'
}
