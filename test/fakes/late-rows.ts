import type {
  AnyTable,
  ColumnValue,
  FeedPosition,
  FeedQuery,
  FeedSlice,
  ListQuery,
  RowFeed,
  RowStore,
  RowTable,
  Stored,
  Write,
  WriteOutcome,
} from '../../src/storage/rows.ts'

/** Distance between the IDs of consecutive transactions, so that positions are not consecutive. */
const idStep = 7
const rowsMax = 100_000

/**
 * A row store whose transactions overlap, as those of PostgreSQL do. A transaction gets its ID when it starts, but can be
 * held before it commits. The feed is ordered by transaction ID, and ends before the oldest running transaction.
 */
export class LateRows implements RowStore {
  readonly #rows: RowStore
  #lastId = 0
  readonly #running = new Set<number>()
  /** Transaction IDs of inserted rows, by table and ordinal. */
  readonly #idOf = new Map<string, number>()
  #gate: Promise<void> | undefined

  constructor(rows: RowStore) {
    this.#rows = rows
  }

  /** Makes the next transaction wait before its commit. Returns a function that lets it continue. */
  holdNext(): () => void {
    let release = () => {}
    this.#gate = new Promise(resolve => {
      release = resolve
    })
    return release
  }

  async atomic(writes: readonly Write[]): Promise<WriteOutcome> {
    this.#lastId += idStep
    const id = this.#lastId
    const gate = this.#gate
    this.#gate = undefined
    this.#running.add(id)
    try {
      await gate
      const outcome = await this.#rows.atomic(writes)
      if (outcome.ok)
        for (const write of writes)
          if (write.op === 'insert') await this.#remember(write.table, write.row, id)
      return outcome
    } finally {
      this.#running.delete(id)
    }
  }

  async #remember(table: AnyTable, row: object, id: number): Promise<void> {
    const key = table.key.map(column => (row as Record<string, ColumnValue>)[column]!)
    const stored = await this.#rows.get(table as RowTable<never>, key)
    if (stored) this.#idOf.set(`${table.name} ${stored.ordinal}`, id)
  }

  get<Row extends object>(
    table: RowTable<Row>,
    key: readonly ColumnValue[],
  ): Promise<Stored<Row> | undefined> {
    return this.#rows.get(table, key)
  }

  list<Row extends object>(table: RowTable<Row>, query: ListQuery): Promise<Stored<Row>[]> {
    return this.#rows.list(table, query)
  }

  count(table: AnyTable, index: string, prefix: readonly ColumnValue[]): Promise<number> {
    return this.#rows.count(table, index, prefix)
  }

  measure(...query: Parameters<RowStore['measure']>): ReturnType<RowStore['measure']> {
    return this.#rows.measure(...query)
  }

  readonly feed: RowFeed = {
    start: () => '0:0',
    end: async () => this.#safeEnd(),
    positionOf: async (table, key) => {
      const stored = await this.#rows.get(table as RowTable<never>, key)
      if (!stored) return undefined
      const position = this.#positionOf(table, stored)
      return compare(position, this.#safeEnd()) < 0 ? position : this.#safeEnd()
    },
    read: (table, query) => this.#read(table, query),
  }

  async #read<Row extends object>(
    table: RowTable<Row>,
    { index, prefix, after, limit }: FeedQuery,
  ): Promise<FeedSlice<Row>> {
    const end = this.#safeEnd()
    const visible = await this.#rows.list(table, { index, prefix, limit: rowsMax })
    const slice = visible
      .map(stored => ({ stored, position: this.#positionOf(table, stored) }))
      .filter(({ position }) => compare(position, end) < 0 && compare(position, after) > 0)
      .sort((a, b) => compare(a.position, b.position))
      .slice(0, limit)
    return { rows: slice.map(({ stored }) => stored), position: slice.at(-1)?.position ?? after }
  }

  #positionOf(table: AnyTable, { ordinal }: Stored<unknown>): FeedPosition {
    // A row that was inserted but not yet recorded belongs to a running transaction.
    return `${this.#idOf.get(`${table.name} ${ordinal}`) ?? this.#lastId + 1}:${ordinal}`
  }

  /** Returns the position before the oldest running transaction. */
  #safeEnd(): FeedPosition {
    return `${Math.min(this.#lastId + 1, ...this.#running)}:0`
  }
}

/** Compares positions, each of which is a transaction ID and an ordinal. */
function compare(a: FeedPosition, b: FeedPosition): number {
  const [[idA, ordinalA], [idB, ordinalB]] = [a, b].map(position => position.split(':').map(Number)) as [
    [number, number],
    [number, number],
  ]
  return idA - idB || ordinalA - ordinalB
}
