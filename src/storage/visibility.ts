import type { RecordedCaller } from '../contract/audit-record.ts'
import type { Filter } from './filter.ts'

declare const brand: unique symbol

/**
 * The rows of a knowledge base that a read may return. Only `access/row-access.ts` creates values of this type. Every
 * read of content requires one, so that no search can omit the check.
 */
export interface Visibility {
  readonly [brand]: true
  /** A condition on the payload of a row; undefined for all rows. */
  readonly filter: Filter | undefined
}

/** The identity with which a request acts. Plain data, so that a job can act as the caller that created it. */
export interface Actor {
  /** An operator sees all rows. */
  readonly kind: 'operator' | 'principal'
  /** Owner of what the actor adds; null if the actor is not a principal. */
  readonly principalId: string | null
  /** Caller that views the workspace as the principal; absent if the principal itself is the caller. */
  readonly viewedBy?: RecordedCaller
}

/**
 * The rows from which lexical scores are computed: all rows of the collection, or only those that the caller may
 * see. Rows of other collections never count.
 */
export type Statistics = 'collection' | 'visible'

/** Returns `collection` only for a caller who may see all rows. Otherwise, scores could reveal hidden rows. */
export function statisticsFor({ filter }: Visibility): Statistics {
  return filter === undefined ? 'collection' : 'visible'
}
