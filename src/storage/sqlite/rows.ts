import { damagedStore } from '../damaged-store.ts'
import type {
  AnyTable,
  ColumnValue,
  ListQuery,
  RowRevision,
  RowsSize,
  RowTable,
  Stored,
  Write,
  WriteFailure,
  WriteOutcome,
} from '../rows.ts'
import type { SqliteConnection } from './connection.ts'

interface StoredRow {
  readonly ordinal: number
  readonly version: number
  readonly body: string
}

/** Columns of a stored row. The body is cast, because a damaged row can have a body of any type. */
const columnsOfRow = `ordinal, version, CAST(coalesce(body, '') AS TEXT) AS body`

/** A range of an index, as an SQL condition. */
interface IndexRange {
  readonly where: string
  readonly values: readonly ColumnValue[]
}

type FailedWrite = { readonly reason: WriteFailure; readonly unique?: string } | undefined

/**
 * Reads and writes control rows, with one SQL table per row type. Rows are stored as JSON, from which the columns for
 * keys and indexes are computed.
 */
export class SqliteRows {
  readonly #connection: SqliteConnection

  constructor(connection: SqliteConnection) {
    this.#connection = connection
  }

  /** Looks up the key and the tags in indexes, and reads the row only if it has one of the tags. */
  get<Row extends object>(
    table: RowTable<Row>,
    key: readonly ColumnValue[],
    tags?: readonly string[],
  ): Stored<Row> | undefined {
    requireLength(table.key, key)
    if (!tags) return this.#get(table, key)
    return this.#connection.snapshot(() => {
      // A missing row has no tags either. Its tags are looked up, too, so that this takes the same time.
      const ordinal = this.ordinalOf(table, key) ?? 0
      return this.#hasTag(table, key[0]!, ordinal, tags) ? this.#get(table, key) : undefined
    })
  }

  #get<Row extends object>(table: RowTable<Row>, key: readonly ColumnValue[]): Stored<Row> | undefined {
    const row = this.#connection
      .prepare<StoredRow>(`SELECT ${columnsOfRow} FROM ${table.name} WHERE ${equalitySql(table.key)}`)
      .get(...key)
    return row && decodeRow<Row>(table, row)
  }

  #hasTag(table: AnyTable, workspaceId: ColumnValue, ordinal: number, tags: readonly string[]): boolean {
    const sql = `SELECT 1 FROM ${tagTable(table)} WHERE workspaceId = ? AND tag = ? AND ordinal = ?`
    const statement = this.#connection.prepare(sql)
    return tags.some(tag => statement.get(workspaceId, tag, ordinal) !== undefined)
  }

  list<Row extends object>(table: RowTable<Row>, query: ListQuery): Stored<Row>[] {
    const { tags } = query
    if (tags) return this.#connection.snapshot(() => this.#listTagged(table, query, tags))
    const columns = columnsOf(table, query.index)
    const sorting = columns.slice(query.prefix.length)
    if (query.after) requireLength(sorting, query.after)
    const prefix = { where: equalitySql(columns.slice(0, query.prefix.length)), values: query.prefix }
    const end = endRange(sorting, query)
    const direction = query.descending ? 'DESC' : 'ASC'
    const order =
      sorting.length > 0 ? `ORDER BY ${sorting.map(column => `${column} ${direction}`).join(', ')}` : ''
    const ranges = rangesAfter(sorting, query)
    const read = () => {
      const storedRows: StoredRow[] = []
      let charsLeft = query.charsMax ?? Number.POSITIVE_INFINITY
      for (const range of ranges) {
        const before = storedRows.length
        if (before >= query.limit || charsLeft < 0) break
        const where = [prefix, range, end].map(part => part.where).filter(part => part !== '')
        const sql = `SELECT ${columnsOfRow} FROM ${tableWithIndex(table, query.index)} WHERE ${where.join(' AND ') || '1'} ${order} LIMIT ?`
        const values = [...prefix.values, ...range.values, ...end.values, query.limit - before]
        storedRows.push(...this.#read(sql, values, charsLeft))
        for (const { body } of storedRows.slice(before)) charsLeft -= body.length
      }
      return storedRows.map(row => decodeRow<Row>(table, row))
    }
    return ranges.length === 1 ? read() : this.#connection.snapshot(read)
  }

  /** Merges the ordinals of each tag, and reads only the rows of the result. */
  #listTagged<Row extends object>(
    table: RowTable<Row>,
    { index, prefix, after, limit, charsMax = Number.POSITIVE_INFINITY, descending }: ListQuery,
    tags: readonly string[],
  ): Stored<Row>[] {
    requireLength(columnsOf(table, index).slice(prefix.length), ['ordinal'])
    const [from = descending ? Number.MAX_SAFE_INTEGER : 0] = after ?? []
    const [beyond, direction] = descending ? ['<', 'DESC'] : ['>', 'ASC']
    const statement = this.#connection.prepare<Pick<StoredRow, 'ordinal'>>(
      `SELECT ordinal FROM ${tagTable(table)} WHERE workspaceId = ? AND tag = ? AND ordinal ${beyond} ?
        ORDER BY ordinal ${direction} LIMIT ?`,
    )
    const ordinals = new Set<number>()
    for (const tag of tags)
      for (const { ordinal } of statement.all(prefix[0]!, tag, from, limit)) ordinals.add(ordinal)
    const sorted = [...ordinals].sort((a, b) => (descending ? b - a : a - b)).slice(0, limit)
    const rowOf = this.#connection.prepare<StoredRow>(
      `SELECT ${columnsOfRow} FROM ${table.name} WHERE ordinal = ?`,
    )
    const storedRows: Stored<Row>[] = []
    let chars = 0
    for (const ordinal of sorted) {
      const row = rowOf.get(ordinal)
      if (!row)
        throw damagedStore(`row ${ordinal} of ${table.name}`, new Error('the row of a tag is missing'))
      storedRows.push(decodeRow<Row>(table, row))
      chars += row.body.length
      if (chars > charsMax) break
    }
    return storedRows
  }

  /** Returns rows until their total length exceeds `charsLeft`. Includes the row that exceeds it. */
  #read(sql: string, values: readonly ColumnValue[], charsLeft: number): StoredRow[] {
    const statement = this.#connection.prepare<StoredRow>(sql)
    if (charsLeft === Number.POSITIVE_INFINITY) return statement.all(...values)
    const storedRows: StoredRow[] = []
    let chars = 0
    for (const row of statement.iterate(...values)) {
      storedRows.push(row)
      chars += row.body.length
      if (chars > charsLeft) break
    }
    return storedRows
  }

  count(table: AnyTable, index: string, prefix: readonly ColumnValue[]): number {
    if (table.name === 'documents' && index === 'byKnowledgeBase' && prefix.length === 2)
      return this.#countDocuments(prefix)
    const where = equalitySql(columnsOf(table, index).slice(0, prefix.length)) || '1'
    const sql = `SELECT count(*) AS rows FROM ${tableWithIndex(table, index)} WHERE ${where}`
    return this.#connection.prepare<{ rows: number }>(sql).get(...prefix)!.rows
  }

  measure(table: AnyTable, index: string, prefix: readonly ColumnValue[]): RowsSize {
    const where = equalitySql(columnsOf(table, index).slice(0, prefix.length)) || '1'
    const sql = `SELECT count(*) AS rows, coalesce(sum(octet_length(body)), 0) AS bytes
      FROM ${tableWithIndex(table, index)} WHERE ${where}`
    return this.#connection.prepare<RowsSize>(sql).get(...prefix)!
  }

  /** Reads the number that triggers maintain. */
  #countDocuments(knowledgeBase: readonly ColumnValue[]): number {
    const row = this.#connection
      .prepare<{ documents: number }>(
        'SELECT documents FROM document_count WHERE workspaceId = ? AND knowledgeBaseId = ?',
      )
      .get(...knowledgeBase)
    return row?.documents ?? 0
  }

  /** Returns the ordinal of a row; undefined if there is no such row. */
  ordinalOf(table: AnyTable, key: readonly ColumnValue[]): number | undefined {
    return this.#find(table, table.key, key)?.ordinal
  }

  /** Returns the highest ordinal of the stored rows; 0 if there are none. */
  lastOrdinal(table: AnyTable): number {
    const sql = `SELECT coalesce(max(ordinal), 0) AS last FROM ${table.name}`
    return this.#connection.prepare<{ last: number }>(sql).get()!.last
  }

  /** Applies writes in order. Stops at the first failure, after which the caller must roll back the earlier writes. */
  apply(writes: readonly Write[]): WriteOutcome {
    for (const [at, write] of writes.entries()) {
      const failure = this.#apply(write)
      if (failure) return { ok: false, at, ...failure }
    }
    return { ok: true }
  }

  #apply(write: Write): FailedWrite {
    switch (write.op) {
      case 'insert':
        return this.#insert(write.table, write.row)
      case 'replace':
        return this.#replace(write.table, write.row, write)
      case 'delete':
        return this.#delete(write.table, write.key, write)
      case 'deleteAll': {
        const where = equalitySql(columnsOf(write.table, write.index).slice(0, write.prefix.length)) || '1'
        this.#connection.prepare(`DELETE FROM ${write.table.name} WHERE ${where}`).run(...write.prefix)
        return undefined
      }
      case 'removeFromList':
        return this.#removeFromList(write)
      case 'require':
        return this.#require(write.table, write.key, write)
      case 'requireNone': {
        const columns = columnsOf(write.table, write.index).slice(0, write.prefix.length)
        return this.#find(write.table, columns, write.prefix) ? { reason: 'present' } : undefined
      }
    }
  }

  #insert(table: AnyTable, row: object): FailedWrite {
    const duplicate = this.#findDuplicate(table, row)
    if (duplicate) return duplicate
    this.#connection
      .prepare(`INSERT INTO ${table.name} (version, body) VALUES (1, ?)`)
      .run(JSON.stringify(row))
    return undefined
  }

  #replace(table: AnyTable, row: object, revision: Partial<RowRevision>): FailedWrite {
    const key = valuesOf(row, table.key)
    const stored = this.#find(table, table.key, key)
    if (!stored) return { reason: 'absent' }
    if (!hasRevision(stored, revision)) return { reason: 'stale' }
    const duplicate = this.#findDuplicate(table, row, stored.ordinal)
    if (duplicate) return duplicate
    this.#connection
      .prepare(`UPDATE ${table.name} SET version = version + 1, body = ? WHERE ordinal = ?`)
      .run(JSON.stringify(row), stored.ordinal)
    return undefined
  }

  #require(table: AnyTable, key: readonly ColumnValue[], revision: Partial<RowRevision>): FailedWrite {
    const stored = this.#find(table, table.key, key)
    if (!stored) return { reason: 'absent' }
    return hasRevision(stored, revision) ? undefined : { reason: 'stale' }
  }

  #delete(table: AnyTable, key: readonly ColumnValue[], revision: Partial<RowRevision>): FailedWrite {
    const stored = this.#find(table, table.key, key)
    if (!stored) return { reason: 'absent' }
    if (!hasRevision(stored, revision)) return { reason: 'stale' }
    this.#connection.prepare(`DELETE FROM ${table.name} WHERE ordinal = ?`).run(stored.ordinal)
    return undefined
  }

  #removeFromList({
    table,
    index,
    prefix,
    field,
    value,
  }: Extract<Write, { op: 'removeFromList' }>): undefined {
    const matchesPrefix = equalitySql(columnsOf(table, index).slice(0, prefix.length)) || '1'
    const list = `json_each(body, '$.${field}')`
    this.#connection
      .prepare(
        `UPDATE ${table.name} SET version = version + 1, body = json_set(body, '$.${field}',
          json((SELECT json_group_array(value) FROM (SELECT value FROM ${list} WHERE value IS NOT ? ORDER BY key))))
          WHERE ${matchesPrefix} AND EXISTS (SELECT 1 FROM ${list} WHERE value IS ?)
          AND EXISTS (SELECT 1 FROM ${list} WHERE value IS NOT ?)`,
      )
      .run(value, ...prefix, value, value)
  }

  /** Returns the failure if another row has the same key, or the same values in a unique set of columns. */
  #findDuplicate(table: AnyTable, row: object, ownOrdinal?: number): FailedWrite {
    if (ownOrdinal === undefined && this.#find(table, table.key, valuesOf(row, table.key)))
      return { reason: 'exists' }
    for (const [unique, columns] of Object.entries(table.unique)) {
      const values = valuesOf(row, columns)
      if (values.includes(null)) continue
      const other = this.#find(table, columns, values)
      if (other && other.ordinal !== ownOrdinal) return { reason: 'taken', unique }
    }
    return undefined
  }

  #find(table: AnyTable, columns: readonly string[], values: readonly ColumnValue[]) {
    requireLength(columns, values)
    const sql = `SELECT ordinal, version FROM ${table.name} WHERE ${equalitySql(columns) || '1'} LIMIT 1`
    return this.#connection.prepare<RowRevision>(sql).get(...values)
  }
}

function hasRevision(stored: RowRevision, { version, ordinal }: Partial<RowRevision>): boolean {
  return (version ?? stored.version) === stored.version && (ordinal ?? stored.ordinal) === stored.ordinal
}

/** Returns the SQL name of a declared index. */
function indexName(table: Pick<AnyTable, 'name'>, index: string): string {
  return `${table.name}_${index}`
}

/**
 * Returns an SQL expression for a table that is read with a specific index. The query planner has no statistics to
 * select a good index. In addition, a query that names its index fails if the index is missing.
 */
export function tableWithIndex(table: AnyTable, index: string): string {
  const isInsertionOrder = columnsOf(table, index)[0] === 'ordinal'
  return `${table.name} ${isInsertionOrder ? 'NOT INDEXED' : `INDEXED BY ${indexName(table, index)}`}`
}

/** Returns the SQL name of the table with the tags of rows. */
function tagTable(table: AnyTable): string {
  if (!table.hasTags) throw new RangeError(`rows of ${table.name} have no tags`)
  return `${table.name}_tags`
}

function columnsOf(table: AnyTable, index: string): readonly string[] {
  const columns = table.indexes[index]
  if (!columns) throw new RangeError(`table ${table.name} has no index ${index}`)
  return columns
}

function requireLength(columns: readonly string[], values: readonly ColumnValue[]): void {
  if (columns.length !== values.length)
    throw new RangeError(`${values.length} values for the columns ${columns.join(', ')}`)
}

/** Returns the values of columns; null for a column that the row does not have. */
function valuesOf(row: object, columns: readonly string[]): ColumnValue[] {
  return columns.map(column => (row as Record<string, ColumnValue | undefined>)[column] ?? null)
}

function equalitySql(columns: readonly string[]): string {
  return columns.map(column => `${column} IS ?`).join(' AND ')
}

/**
 * Returns index ranges that together contain the rows after a position, in the order of the list. In the first range,
 * rows differ from the position only in the last column. In the next range, they differ only in the last two columns,
 * and so on. Nulls sort before all other values.
 */
function rangesAfter(columns: readonly string[], { after, descending }: ListQuery): IndexRange[] {
  if (!after) return [{ where: '', values: [] }]
  const ranges: IndexRange[] = []
  for (let shared = columns.length - 1; shared >= 0; shared--) {
    for (const range of rangesBeyond(columns[shared]!, after[shared]!, descending === true)) {
      const where = [equalitySql(columns.slice(0, shared)), range.where]
        .filter(part => part !== '')
        .join(' AND ')
      ranges.push({ where, values: [...after.slice(0, shared), ...range.values] })
    }
  }
  return ranges
}

function rangesBeyond(column: string, value: ColumnValue, descending: boolean): IndexRange[] {
  if (!descending)
    return [
      value === null
        ? { where: `${column} IS NOT NULL`, values: [] }
        : { where: `${column} > ?`, values: [value] },
    ]
  if (value === null) return []
  const lower = { where: `${column} < ?`, values: [value] }
  return column === 'ordinal' ? [lower] : [lower, { where: `${column} IS NULL`, values: [] }]
}

/** Returns the condition that ends a list at `through`. */
function endRange([column]: readonly string[], { through, descending }: ListQuery): IndexRange {
  if (column === undefined || through === undefined) return { where: '', values: [] }
  return { where: `${column} ${descending ? '>=' : '<='} ?`, values: [through] }
}

/** @throws control_plane_unavailable  the row is damaged */
function decodeRow<Row>({ name }: AnyTable, { ordinal, version, body }: StoredRow): Stored<Row> {
  try {
    return { row: JSON.parse(body) as Row, version, ordinal, text: body }
  } catch (error) {
    throw damagedStore(`row ${ordinal} of ${name}`, error)
  }
}
