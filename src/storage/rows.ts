/** A table of rows of one kind; plain data, so that it can be sent to a worker thread. */
export interface AnyTable {
  readonly name: string
  readonly key: readonly string[]
  /**
   * Sets of columns whose combined values must be unique, by name. A row with a null in the set is exempt.
   */
  readonly unique: Readonly<Record<string, readonly string[]>>
  /**
   * Sort orders of lists, by name: the leading columns are matched, the others sort. `ordinal` is the order
   * of insertion; as the only column it is the table's own order.
   */
  readonly indexes: Readonly<Record<string, readonly string[]>>
}

/** A table, with the type of its rows. */
export interface RowTable<Row extends object> extends AnyTable {
  readonly key: readonly ColumnName<Row>[]
  readonly unique: Readonly<Record<string, readonly ColumnName<Row>[]>>
  readonly indexes: Readonly<Record<string, readonly (ColumnName<Row> | 'ordinal')[]>>
  /** Declares the row type; never set. */
  readonly row?: Row
}

export type ColumnName<Row> = keyof Row & string
export type ColumnValue = string | number | null

/** A stored row. `version` counts its changes from 1; `ordinal` is unique in its table and only increases. */
export interface Stored<Row> {
  readonly row: Row
  readonly version: number
  readonly ordinal: number
  /** The row as JSON text. */
  readonly text: string
}

export interface ListQuery {
  readonly index: string
  /** Values of the leading columns. */
  readonly prefix: readonly ColumnValue[]
  /** Values of the remaining columns of a row; the list starts after that row. */
  readonly after?: readonly ColumnValue[]
  readonly limit: number
  /** The list ends with the row that brings its total length as JSON text above this. */
  readonly charsMax?: number
  readonly descending?: boolean
  /** Last value of the first remaining column to include. A row with null in that column is left out. */
  readonly through?: string | number
}

/** A write with its condition, as data. A unit of writes is applied completely or not at all. */
export type Write =
  /** Fails with `exists` for a duplicate key, and with `taken` for a duplicate unique set. */
  | { readonly op: 'insert'; readonly table: AnyTable; readonly row: object }
  /**
   * Fails with `absent`, with `stale` if `version` is given and differs, and with `taken` on a unique set.
   */
  | { readonly op: 'replace'; readonly table: AnyTable; readonly row: object; readonly version?: number }
  /** Fails with `absent`, and with `stale` if `version` is given and differs. */
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
   * Removes a text from the list in `field` of each row under a prefix of an index. Keeps the text if the
   * list would become empty, as an empty list may mean "all". Never fails.
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

export type WriteRefusal = 'exists' | 'taken' | 'stale' | 'absent' | 'present'

/** Result of a unit: applied, or the position of the write that failed and the reason. */
export type WriteOutcome =
  | { readonly ok: true }
  /** `unique` is the name of the set if the reason is `taken`. */
  | { readonly ok: false; readonly at: number; readonly reason: WriteRefusal; readonly unique?: string }

/** Control rows. Every method may throw `control_plane_unavailable`. */
export interface RowStore {
  get<Row extends object>(table: RowTable<Row>, key: readonly ColumnValue[]): Promise<Stored<Row> | undefined>
  list<Row extends object>(table: RowTable<Row>, query: ListQuery): Promise<Stored<Row>[]>
  count(table: AnyTable, index: string, prefix: readonly ColumnValue[]): Promise<number>
  /** Applies a unit of writes, which is durable when the promise resolves. */
  atomic(writes: readonly Write[]): Promise<WriteOutcome>
}
