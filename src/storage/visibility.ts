declare const brand: unique symbol

/**
 * The principals whose rows a read may return. Only `access/full-visibility.ts` creates it. Every read of content
 * requires it, so that no search can omit the check.
 */
export interface Visibility {
  readonly [brand]: true
  /** `all` for every row; otherwise, rows whose `visible_to` contains `*` or one of these principals. */
  readonly principals: 'all' | readonly string[]
}

/**
 * Rows that lexical scores are computed from: all rows of the collection, or only those that the caller may
 * see. Counts never include other collections.
 */
export type Statistics = 'collection' | 'visible'

/** Returns `collection` only for a caller who may see all rows, because scores must not reveal hidden rows. */
export function statisticsFor(visibility: Visibility): Statistics {
  return visibility.principals === 'all' ? 'collection' : 'visible'
}
