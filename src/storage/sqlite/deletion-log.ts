import type { SqliteConnection } from './connection.ts'

/** A row of `record_gone`: a deleted record, and the position of its deletion in the log. */
export interface LoggedDeletion {
  readonly seq: number
  readonly record: number
}

/** Returns the position of the last deletion from a collection; 0 if no record was deleted. */
export function lastDeletion(connection: SqliteConnection, collection: number): number {
  const row = connection
    .prepare<{ seq: number | null }>('SELECT max(seq) AS seq FROM record_gone WHERE collection = ?')
    .get(collection)!
  return row.seq ?? 0
}

/**
 * Returns the deletions from a collection after a position, in order. Earlier deletions may have been trimmed from the
 * log, so the caller must compare its number of records with that of the collection.
 */
export function deletionsAfter(
  connection: SqliteConnection,
  collection: number,
  seq: number,
): LoggedDeletion[] {
  return connection
    .prepare<LoggedDeletion>(
      'SELECT seq, record FROM record_gone WHERE collection = ? AND seq > ? ORDER BY seq',
    )
    .all(collection, seq)
}
