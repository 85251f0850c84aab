import type { SqliteConnection } from '../connection.ts'

/** One generation of the postings of a collection. */
export interface PostingIndexKey {
  /** ID of the collection. */
  readonly collection: number
  readonly generation: number
}

/** The language and the analyzer with which the terms of an index were created. */
export interface PostingAnalysis {
  /** Code of the language. */
  readonly language: string
  /** Version of the analyzer. */
  readonly analyzer: number
}

/** Row of `posting_index`. */
export interface PostingIndexRow extends PostingIndexKey, PostingAnalysis {
  readonly id: number
  readonly active: 0 | 1
  readonly version: number
  /** Highest record that was ever added; 0 at first. */
  readonly lastRecord: number
  /** 1 if segments may have to be merged. */
  readonly mergeDue: 0 | 1
}

const columns =
  'id, collection, generation, language, analyzer, active, version, last_record AS lastRecord, merge_due AS mergeDue'

export function findPostingIndex(
  connection: SqliteConnection,
  { collection, generation }: PostingIndexKey,
): PostingIndexRow | undefined {
  return connection
    .prepare<PostingIndexRow>(`SELECT ${columns} FROM posting_index WHERE collection = ? AND generation = ?`)
    .get(collection, generation)
}

/** Returns all generations of a collection that exist, in ascending order. */
export function listPostingIndexes(connection: SqliteConnection, collection: number): PostingIndexRow[] {
  return connection
    .prepare<PostingIndexRow>(`SELECT ${columns} FROM posting_index WHERE collection = ? ORDER BY generation`)
    .all(collection)
}

/** Returns the generation that searches read; undefined if none is active. */
export function findActivePostingIndex(
  connection: SqliteConnection,
  collection: number,
): PostingIndexRow | undefined {
  return connection
    .prepare<PostingIndexRow>(`SELECT ${columns} FROM posting_index WHERE collection = ? AND active = 1`)
    .get(collection)
}

/** Increments the version of an index after a change of its segments, and marks it for merging. Returns the new version. */
export function incrementVersion(connection: SqliteConnection, index: number): number {
  return connection
    .prepare<{ version: number }>(
      'UPDATE posting_index SET version = version + 1, merge_due = 1 WHERE id = ? RETURNING version',
    )
    .get(index)!.version
}
