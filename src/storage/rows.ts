/** Where rows of one kind lie; plain data, so that it can travel to a worker. */
export interface AnyTable {
  readonly name: string
  readonly key: readonly string[]
  /** Sets of columns that no two rows may share; a null in one of them lifts the constraint. */
  readonly unique: Readonly<Record<string, readonly string[]>>
  /** List orders: leading columns are matched, the others sort. `ordinal` is the order of insertion, alone the table's own. */
  readonly indexes: Readonly<Record<string, readonly string[]>>
}

/** One kind of control row, and the type of its rows. */
export interface Table<Row extends object> extends AnyTable {
  readonly key: readonly Column<Row>[]
  readonly unique: Readonly<Record<string, readonly Column<Row>[]>>
  readonly indexes: Readonly<Record<string, readonly (Column<Row> | 'ordinal')[]>>
  /** Carries the row type; never set. */
  readonly row?: Row
}

export type Column<Row> = keyof Row & string
export type Value = string | number | null

/** A row as it is kept: `version` counts its changes from 1, `ordinal` is unique in its table and only grows. */
export interface Stored<Row> {
  readonly row: Row
  readonly version: number
  readonly ordinal: number
  /** Length of the row as JSON. */
  readonly chars: number
}

export interface ListQuery {
  readonly index: string
  /** Values of the leading columns. */
  readonly prefix: readonly Value[]
  /** Values of the remaining columns of the row to start after. */
  readonly after?: readonly Value[]
  readonly limit: number
  /** The list ends with the row by which all its rows, as JSON, are longer than this. */
  readonly charsMax?: number
  readonly descending?: boolean
  /** The last value of the first remaining column that the list goes on to; a row without one is left out. */
  readonly through?: string | number
}

/** A checked change, as data. A unit of them is applied whole or not at all. */
export type Write =
  /** Fails `exists` on the key, `taken` on a unique set. */
  | { readonly op: 'insert'; readonly table: AnyTable; readonly row: object }
  /** Fails `absent`, `stale` when `version` is given and differs, `taken` on a unique set. */
  | { readonly op: 'replace'; readonly table: AnyTable; readonly row: object; readonly version?: number }
  /** Fails `absent`, `stale` when `version` is given and differs. */
  | {
      readonly op: 'delete'
      readonly table: AnyTable
      readonly key: readonly Value[]
      readonly version?: number
    }
  /** Delete every row under a prefix of an index; never fails. */
  | {
      readonly op: 'deleteAll'
      readonly table: AnyTable
      readonly index: string
      readonly prefix: readonly Value[]
    }
  /**
   * Take a text out of a list that rows under a prefix of an index hold in `field`, unless that would leave none: an
   * empty list may mean all. Never fails.
   */
  | {
      readonly op: 'withdraw'
      readonly table: AnyTable
      readonly index: string
      readonly prefix: readonly Value[]
      readonly field: string
      readonly value: string
    }
  /** Fails `absent`. */
  | { readonly op: 'require'; readonly table: AnyTable; readonly key: readonly Value[] }
  /** Fails `present` when a row stands under the prefix. */
  | {
      readonly op: 'requireNone'
      readonly table: AnyTable
      readonly index: string
      readonly prefix: readonly Value[]
    }

export type Refusal = 'exists' | 'taken' | 'stale' | 'absent' | 'present'

/** Whether a unit was applied; else which of its writes was refused, and why. */
export type Outcome =
  | { readonly ok: true }
  /** `unique` names the set of a `taken`. */
  | { readonly ok: false; readonly at: number; readonly reason: Refusal; readonly unique?: string }

/**
 * Control rows. Every method may throw `control_plane_unavailable`.
 */
export interface RowStore {
  get<Row extends object>(table: Table<Row>, key: readonly Value[]): Promise<Stored<Row> | undefined>
  list<Row extends object>(table: Table<Row>, query: ListQuery): Promise<Stored<Row>[]>
  count(table: AnyTable, index: string, prefix: readonly Value[]): Promise<number>
  /** Apply a unit of checked writes; durable when it resolves. */
  atomic(writes: readonly Write[]): Promise<Outcome>
}
