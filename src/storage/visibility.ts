declare const brand: unique symbol

/**
 * The principals whose rows a read may return. Only `access/full-visibility.ts` creates values of this type. Every read
 * of content requires one, so that no search can omit the check.
 */
export interface Visibility {
  readonly [brand]: true
  /** `all` for every row; otherwise, rows whose `visible_to` contains `*` or one of these principals. */
  readonly principals: 'all' | readonly string[]
}

/**
 * The rows from which lexical scores are computed: all rows of the collection, or only those that the caller may
 * see. Rows of other collections never count.
 */
export type Statistics = 'collection' | 'visible'

/** Returns `collection` only for a caller who may see all rows. Otherwise, scores could reveal hidden rows. */
export function statisticsFor(visibility: Visibility): Statistics {
  return visibility.principals === 'all' ? 'collection' : 'visible'
}
