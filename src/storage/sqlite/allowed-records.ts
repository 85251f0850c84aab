import type { SearchReach } from '../content.ts'
import { createMatcher, type Filter } from '../filter.ts'
import type { Visibility } from '../visibility.ts'
import { decodePayload } from './collections.ts'
import type { SqliteConnection } from './connection.ts'
import { filterToSql, type SqlFragment } from './filter-sql.ts'

/** Maximum number of cached sets of allowed records. A search uses the same set several times. */
const SETS_MAX = 8
/** Maximum number of records in a cached set, at about 40 bytes each. */
const SET_SIZE_MAX = 250_000
/**
 * Maximum number of conditions to evaluate in SQL, which parses the payload again for each; above it, each
 * payload is parsed once in JavaScript.
 */
const SQL_CONDITIONS_MAX = 4

/**
 * Returns a condition on the payload of rows that a caller may see; undefined if the caller may see all rows.
 */
export function visibilitySql({ principals }: Visibility, payloadColumn: string): SqlFragment | undefined {
  if (principals === 'all') return undefined
  return {
    sql: `EXISTS (SELECT 1 FROM json_each(${payloadColumn}, '$.visible_to') v WHERE typeof(v.key) = 'integer'
      AND v.type = 'text' AND (v.value = '*' OR v.value IN (SELECT p.value FROM json_each(?) p)))`,
    parameters: [JSON.stringify(principals)],
  }
}

/** Computes the records that a caller may see and that match a filter, before any ranking is limited. */
export class AllowedRecords {
  readonly #connection: SqliteConnection
  readonly #sets = new Map<string, ReadonlySet<number>>()

  constructor(connection: SqliteConnection) {
    this.#connection = connection
  }

  /** Returns the allowed records of a collection; undefined if all are allowed. Reads all payloads. */
  allowed(collection: { id: number; version: number }, reach: SearchReach): ReadonlySet<number> | undefined {
    const visibility = visibilitySql(reach.visibility, 'payload')
    if (!visibility && !reach.filter) return undefined
    const name = JSON.stringify([
      collection.id,
      collection.version,
      reach.visibility.principals,
      reach.filter,
    ])
    const known = this.#sets.get(name)
    if (known) return known
    const set = this.#read(collection.id, visibility, reach.filter)
    const [oldest] = this.#sets.keys()
    if (this.#sets.size >= SETS_MAX && oldest !== undefined) this.#sets.delete(oldest)
    if (set.size <= SET_SIZE_MAX) this.#sets.set(name, set)
    return set
  }

  #read(
    collection: number,
    visibility: SqlFragment | undefined,
    filter: Filter | undefined,
  ): ReadonlySet<number> {
    const isShort = conditionCount(filter) <= SQL_CONDITIONS_MAX
    const given = [visibility, isShort ? filterToSql(filter, 'payload') : undefined].filter(
      part => part !== undefined,
    )
    const where = ['collection = ?', ...given.map(part => `(${part.sql})`)].join(' AND ')
    const parameters = [collection, ...given.flatMap(part => part.parameters)]
    return isShort ? this.#selected(where, parameters) : this.#matching(where, parameters, filter)
  }

  #selected(where: string, parameters: readonly (string | number)[]): ReadonlySet<number> {
    const rows = this.#connection
      .prepare<{ record: number }>(`SELECT record FROM record WHERE ${where}`)
      .iterate(...parameters)
    const set = new Set<number>()
    for (const { record } of rows) set.add(record)
    return set
  }

  #matching(
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

/** Returns the number of times that the SQL form of a filter reads a payload. */
function conditionCount(filter: Filter | undefined): number {
  switch (filter?.kind) {
    case undefined:
      return 0
    case 'and':
    case 'or':
      return filter.of.reduce((sum, part) => sum + conditionCount(part), 0)
    case 'not':
      return conditionCount(filter.of)
    case 'all':
      return filter.values.length
    case 'in':
    case 'range':
    case 'type':
      return 1
  }
}
