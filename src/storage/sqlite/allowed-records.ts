import type { SearchConstraints } from '../content.ts'
import { createMatcher, type Filter } from '../filter.ts'
import type { Visibility } from '../visibility.ts'
import { decodePayload } from './collections.ts'
import type { SqliteConnection } from './connection.ts'
import { filterToSql, type SqlFragment } from './filter-sql.ts'

/** Maximum number of cached sets of allowed records. Sets are cached, because a search uses a set several times. */
const SETS_MAX = 8
/** Maximum number of records in a cached set, at about 40 bytes each. */
const SET_SIZE_MAX = 250_000
/**
 * Maximum number of conditions in a filter that is evaluated in SQL. SQL parses a payload once for each condition.
 * Filters with more conditions are evaluated in JavaScript, which parses each payload once.
 */
const SQL_CONDITIONS_MAX = 4

/**
 * Returns an SQL condition that selects the rows that a caller may see; undefined if the caller may see all rows.
 */
export function visibilitySql({ principals }: Visibility, payloadColumn: string): SqlFragment | undefined {
  if (principals === 'all') return undefined
  return {
    sql: `EXISTS (SELECT 1 FROM json_each(${payloadColumn}, '$.visible_to') v WHERE typeof(v.key) = 'integer'
      AND v.type = 'text' AND (v.value = '*' OR v.value IN (SELECT p.value FROM json_each(?) p)))`,
    parameters: [JSON.stringify(principals)],
  }
}

/** Computes the records that a caller may see and that match a filter. */
export class AllowedRecords {
  readonly #connection: SqliteConnection
  readonly #sets = new Map<string, ReadonlySet<number>>()

  constructor(connection: SqliteConnection) {
    this.#connection = connection
  }

  /**
   * Returns the record numbers that the constraints allow; undefined if they allow all records of the collection. Reads
   * the payloads of all records if the result is not cached.
   */
  allowed(
    collection: { id: number; version: number },
    constraints: SearchConstraints,
  ): ReadonlySet<number> | undefined {
    const visibility = visibilitySql(constraints.visibility, 'payload')
    if (!visibility && !constraints.filter) return undefined
    const cacheKey = JSON.stringify([
      collection.id,
      collection.version,
      constraints.visibility.principals,
      constraints.filter,
    ])
    const cached = this.#sets.get(cacheKey)
    if (cached) return cached
    const set = this.#read(collection.id, visibility, constraints.filter)
    const [oldest] = this.#sets.keys()
    if (this.#sets.size >= SETS_MAX && oldest !== undefined) this.#sets.delete(oldest)
    if (set.size <= SET_SIZE_MAX) this.#sets.set(cacheKey, set)
    return set
  }

  #read(
    collection: number,
    visibility: SqlFragment | undefined,
    filter: Filter | undefined,
  ): ReadonlySet<number> {
    const useSql = conditionCount(filter) <= SQL_CONDITIONS_MAX
    const conditions = [visibility, useSql ? filterToSql(filter, 'payload') : undefined].filter(
      part => part !== undefined,
    )
    const where = ['collection = ?', ...conditions.map(part => `(${part.sql})`)].join(' AND ')
    const parameters = [collection, ...conditions.flatMap(part => part.parameters)]
    return useSql ? this.#readWithSql(where, parameters) : this.#readWithMatcher(where, parameters, filter)
  }

  #readWithSql(where: string, parameters: readonly (string | number)[]): ReadonlySet<number> {
    const rows = this.#connection
      .prepare<{ record: number }>(`SELECT record FROM record WHERE ${where}`)
      .iterate(...parameters)
    const set = new Set<number>()
    for (const { record } of rows) set.add(record)
    return set
  }

  #readWithMatcher(
    where: string,
    parameters: readonly (string | number)[],
    filter: Filter | undefined,
  ): ReadonlySet<number> {
    const rows = this.#connection
      .prepare<{ record: number; payload: string }>(`SELECT record, payload FROM record WHERE ${where}`)
      .iterate(...parameters)
    const matches = createMatcher(filter)
    const set = new Set<number>()
    for (const row of rows) if (matches(decodePayload(row))) set.add(row.record)
    return set
  }
}

/** Returns the number of times that the SQL condition for a filter parses a payload. */
function conditionCount(filter: Filter | undefined): number {
  switch (filter?.kind) {
    case undefined:
      return 0
    case 'and':
    case 'or':
      return filter.parts.reduce((sum, part) => sum + conditionCount(part), 0)
    case 'not':
      return conditionCount(filter.operand)
    case 'all':
      return filter.values.length
    case 'in':
    case 'range':
    case 'type':
      return 1
  }
}
