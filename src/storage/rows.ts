/** Declaration of a table. It contains only data, so that it can be sent to a worker thread. */
export interface AnyTable {
  readonly name: string
  readonly key: readonly string[]
  /**
   * Sets of columns whose combined values must be unique, by name of the set. Rows with a null in the set are exempt.
   */
  readonly unique: Readonly<Record<string, readonly string[]>>
  /**
   * Columns of indexes, by name of the index. A query gives values of leading columns, and sorts by the remaining
   * columns. `ordinal` is the insertion order. An index that consists of only this column does not need an SQL index.
   */
  readonly indexes: Readonly<Record<string, readonly string[]>>
  /**
   * True if rows have tags, which the driver computes. The first column of the key and of the indexes is then the workspace.
   *
   * @see docs/decisions/0049-tags.md
   */
  readonly hasTags?: true
}

/** Declaration of a table, with the type of its rows. */
export interface RowTable<Row extends object> extends AnyTable {
  readonly key: readonly ColumnName<Row>[]
  readonly unique: Readonly<Record<string, readonly ColumnName<Row>[]>>
  readonly indexes: Readonly<Record<string, readonly (ColumnName<Row> | 'ordinal')[]>>
  /** Declares the row type for TypeScript; never set. */
  readonly row?: Row
}

export type ColumnName<Row> = keyof Row & string
export type ColumnValue = string | number | null

/** A row and its metadata. */
export interface Stored<Row> {
  readonly row: Row
  /** 1 for a new row; each change adds 1. */
  readonly version: number
  /**
   * Unique in the table, and never reused. A row gets a higher number than every row that was visible when its transaction began. Of two
   * concurrent transactions, the one with the lower numbers can become visible last, so a reader of new rows must use
   * {@link RowFeed} instead.
   */
  readonly ordinal: number
  /** The row as JSON. */
  readonly text: string
}

/**
 * One state of a row. A row that is deleted and inserted again starts at version 1, so a check whether a row is unchanged
 * must also compare its ordinal.
 */
export type RowRevision = Pick<Stored<unknown>, 'version' | 'ordinal'>

/** Returns the fields of a write that must fail if a row has changed since it was read. */
export function revisionOf({ version, ordinal }: RowRevision): RowRevision {
  return { version, ordinal }
}

export interface ListQuery {
  readonly index: string
  /** Values of the leading columns. */
  readonly prefix: readonly ColumnValue[]
  /** Values of the remaining columns, taken from a row. The list starts after that row. */
  readonly after?: readonly ColumnValue[]
  readonly limit: number
  /** Maximum total length of the rows as JSON. The list ends with the row that exceeds it. */
  readonly charsMax?: number
  readonly descending?: boolean
  /**
   * Selects the rows that have at least one of these tags, without reading others. Only for a table with tags, and a list in the
   * order of `ordinal`. The rows must also match the prefix: a driver need not check it.
   */
  readonly tags?: readonly string[]
  /** Last value to include, in the first column after the prefix. Rows with null in that column are omitted. */
  readonly through?: string | number
}

/** A write with its condition. The writes of a transaction are applied completely or not at all. */
export type Write =
  /**
   * Fails with `exists` if the key is already used, and with `taken` if the values of a unique set are already used.
   */
  | { readonly op: 'insert'; readonly table: AnyTable; readonly row: object }
  /**
   * Fails with `absent` if there is no such row, with `stale` if a field of its revision is set and differs, and with
   * `taken` if the values of a unique set are already used.
   */
  | ({ readonly op: 'replace'; readonly table: AnyTable; readonly row: object } & Partial<RowRevision>)
  /** Fails with `absent` if there is no such row, and with `stale` if a field of its revision is set and differs. */
  | ({
      readonly op: 'delete'
      readonly table: AnyTable
      readonly key: readonly ColumnValue[]
    } & Partial<RowRevision>)
  /** Deletes every row that matches a prefix of an index. Never fails. */
  | {
      readonly op: 'deleteAll'
      readonly table: AnyTable
      readonly index: string
      readonly prefix: readonly ColumnValue[]
    }
  /**
   * Removes a string from the list in `field` of each row that matches a prefix of an index. Keeps the string if the
   * list would become empty, because an empty list can mean "all". Never fails.
   */
  | {
      readonly op: 'removeFromList'
      readonly table: AnyTable
      readonly index: string
      readonly prefix: readonly ColumnValue[]
      readonly field: string
      readonly value: string
    }
  /** Fails with `absent` if there is no such row, and with `stale` if a field of its revision is set and differs. */
  | ({
      readonly op: 'require'
      readonly table: AnyTable
      readonly key: readonly ColumnValue[]
    } & Partial<RowRevision>)
  /** Fails with `present` if a row matches the prefix. */
  | {
      readonly op: 'requireNone'
      readonly table: AnyTable
      readonly index: string
      readonly prefix: readonly ColumnValue[]
    }

export type WriteFailure = 'exists' | 'taken' | 'stale' | 'absent' | 'present'

/** Result of a transaction: `ok`, or the index of the write that failed and the reason. */
export type WriteOutcome =
  | { readonly ok: true }
  /** `at` is the index of the write. `unique` is the name of the unique set if the reason is `taken`. */
  | { readonly ok: false; readonly at: number; readonly reason: WriteFailure; readonly unique?: string }

/** Position in a {@link RowFeed}. Only the driver that returned it can interpret it. Valid for all processes of a store. */
export type FeedPosition = string

export interface FeedQuery {
  /** An index whose first column after the prefix is `ordinal`. */
  readonly index: string
  readonly prefix: readonly ColumnValue[]
  readonly after: FeedPosition
  readonly limit: number
}

export interface FeedSlice<Row> {
  readonly rows: readonly Stored<Row>[]
  /** Position after these rows. If there are no rows, a position that is not before the one of the query. */
  readonly position: FeedPosition
}

/**
 * Reads the rows of a table in a fixed order to which later commits only append.
 *
 * Every driver must guarantee that a row that any process commits after the driver returned a position has a later
 * position. A reader that continues after the position of each slice therefore reads every row once, except rows that are
 * deleted first. The order is that of `ordinal` for transactions that do not overlap. Positions need not be consecutive.
 *
 * SQLite has one writer, so `ordinal` is such a position. A driver whose transactions overlap must withhold a committed
 * row while a transaction that may get an earlier position is running. In PostgreSQL, a position is the pair of the
 * transaction ID (`xid8`) and `ordinal`, and the feed ends before `pg_snapshot_xmin(pg_current_snapshot())`.
 */
export interface RowFeed {
  /** Returns the position after all rows that the feed of a table contains now. */
  end(table: AnyTable): Promise<FeedPosition>
  /**
   * Returns the position after a row, or an earlier one if the driver still withholds the row. Returns undefined if
   * there is no such row.
   */
  positionOf(table: AnyTable, key: readonly ColumnValue[]): Promise<FeedPosition | undefined>
  /** Returns the position before all rows. */
  start(): FeedPosition
  read<Row extends object>(table: RowTable<Row>, query: FeedQuery): Promise<FeedSlice<Row>>
}

/** Number of rows, and their total length as JSON in bytes of UTF-8. */
export interface RowsSize {
  readonly rows: number
  readonly bytes: number
}

/** Reads and writes control rows. Every method can throw `control_plane_unavailable`. */
export interface RowStore {
  /**
   * @param tags  if set, a row without any of these tags is treated as missing, and not read. Only for a table with tags
   */
  get<Row extends object>(
    table: RowTable<Row>,
    key: readonly ColumnValue[],
    tags?: readonly string[],
  ): Promise<Stored<Row> | undefined>
  list<Row extends object>(table: RowTable<Row>, query: ListQuery): Promise<Stored<Row>[]>
  count(table: AnyTable, index: string, prefix: readonly ColumnValue[]): Promise<number>
  /** Returns the number and the size of rows. Reads each row, but not its text, so it takes longer than `count`. */
  measure(table: AnyTable, index: string, prefix: readonly ColumnValue[]): Promise<RowsSize>
  /** Applies writes in one transaction. They are durable when the promise resolves. */
  atomic(writes: readonly Write[]): Promise<WriteOutcome>
  readonly feed: RowFeed
}

export type RowReader = Pick<RowStore, 'get'>
