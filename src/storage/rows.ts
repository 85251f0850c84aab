/** A table of rows of one type. Plain data, so that it can be sent to a worker thread. */
export interface AnyTable {
  readonly name: string
  readonly key: readonly string[]
  /**
   * Sets of columns whose combined values must be unique, by name. A row with a null in the set is exempt.
   */
  readonly unique: Readonly<Record<string, readonly string[]>>
  /**
   * Indexes, by name. A list matches the leading columns and sorts by the others. `ordinal` is the insertion
   * order. An index with only that column needs no SQL index.
   */
  readonly indexes: Readonly<Record<string, readonly string[]>>
}

/** A table, with the type of its rows. */
export interface RowTable<Row extends object> extends AnyTable {
  readonly key: readonly ColumnName<Row>[]
  readonly unique: Readonly<Record<string, readonly ColumnName<Row>[]>>
  readonly indexes: Readonly<Record<string, readonly (ColumnName<Row> | 'ordinal')[]>>
  /** Declares the row type for TypeScript; never set. */
  readonly row?: Row
}

export type ColumnName<Row> = keyof Row & string
export type ColumnValue = string | number | null

/** A stored row. `version` counts its changes from 1; `ordinal` is unique in its table and only increases. */
export interface Stored<Row> {
  readonly row: Row
  readonly version: number
  readonly ordinal: number
  /** The row as JSON. */
  readonly text: string
}

export interface ListQuery {
  readonly index: string
  /** Values of the leading columns. */
  readonly prefix: readonly ColumnValue[]
  /** Values of the other columns of a row. The list starts after that row. */
  readonly after?: readonly ColumnValue[]
  readonly limit: number
  /** Maximum total length as JSON. The list ends with the row that exceeds it. */
  readonly charsMax?: number
  readonly descending?: boolean
  /** Last value to include of the first column after the prefix. Rows with null in that column are omitted. */
  readonly through?: string | number
}

/** A write with its condition, as data. The writes of a transaction are applied completely or not at all. */
export type Write =
  /** Fails with `exists` for a duplicate key, and with `taken` for a duplicate unique set. */
  | { readonly op: 'insert'; readonly table: AnyTable; readonly row: object }
  /**
   * Fails with `absent` if there is no such row, with `stale` if `version` is set and differs, and with `taken` for a
   * duplicate unique set.
   */
  | { readonly op: 'replace'; readonly table: AnyTable; readonly row: object; readonly version?: number }
  /** Fails with `absent` if there is no such row, and with `stale` if `version` is set and differs. */
  | {
      readonly op: 'delete'
      readonly table: AnyTable
      readonly key: readonly ColumnValue[]
      readonly version?: number
    }
  /** Deletes every row under a prefix of an index; never fails. */
  | {
      readonly op: 'deleteAll'
      readonly table: AnyTable
      readonly index: string
      readonly prefix: readonly ColumnValue[]
    }
  /**
   * Removes a string from the list in `field` of each row under a prefix of an index. Keeps the string if the
   * list would become empty, because an empty list may mean "all". Never fails.
   */
  | {
      readonly op: 'removeFromList'
      readonly table: AnyTable
      readonly index: string
      readonly prefix: readonly ColumnValue[]
      readonly field: string
      readonly value: string
    }
  /** Fails with `absent` if there is no such row. */
  | { readonly op: 'require'; readonly table: AnyTable; readonly key: readonly ColumnValue[] }
  /** Fails with `present` if there is a row under the prefix. */
  | {
      readonly op: 'requireNone'
      readonly table: AnyTable
      readonly index: string
      readonly prefix: readonly ColumnValue[]
    }

export type WriteFailure = 'exists' | 'taken' | 'stale' | 'absent' | 'present'

/** Result of a transaction: applied, or the index of the write that failed and the reason. */
export type WriteOutcome =
  | { readonly ok: true }
  /** `at` is the index of the write. `unique` is the name of the unique set if the reason is `taken`. */
  | { readonly ok: false; readonly at: number; readonly reason: WriteFailure; readonly unique?: string }

/** Reads and writes control rows. Every method can throw `control_plane_unavailable`. */
export interface RowStore {
  get<Row extends object>(table: RowTable<Row>, key: readonly ColumnValue[]): Promise<Stored<Row> | undefined>
  list<Row extends object>(table: RowTable<Row>, query: ListQuery): Promise<Stored<Row>[]>
  count(table: AnyTable, index: string, prefix: readonly ColumnValue[]): Promise<number>
  /** Applies writes in one transaction. They are durable when the promise resolves. */
  atomic(writes: readonly Write[]): Promise<WriteOutcome>
}
