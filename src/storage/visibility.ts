declare const brand: unique symbol

/**
 * Whose rows a read may see. Made only in `access/visibility.ts`; every read of content demands one,
 * so that a search path cannot forget it.
 */
export interface Visibility {
  readonly [brand]: true
  /** `all`: every row. Else rows whose `visible_to` holds one of these, or `*`. */
  readonly principals: 'all' | readonly string[]
}

/**
 * What lexical scores are counted over: all rows of the collection, or the caller's visible rows only.
 * Counts never reach across collections.
 */
export type Statistics = 'collection' | 'visible'

/** Hidden rows must not show in scores: only a caller who sees all rows gets the collection's own counts. */
export function statisticsFor(visibility: Visibility): Statistics {
  return visibility.principals === 'all' ? 'collection' : 'visible'
}
