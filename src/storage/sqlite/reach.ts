import type { Reach } from '../content.ts'
import type { Visibility } from '../visibility.ts'
import type { Connection } from './connection.ts'
import { type SqlFragment, toSql } from './filter-sql.ts'

/** Sets of allowed records that are remembered: one search asks for the same set several times. */
const SETS_MAX = 8
/** Larger sets are computed anew, about 40 bytes a record. */
const SET_SIZE_MAX = 250_000

/** Condition on the payload of rows that a caller may see; undefined where that is every row. */
export function visibilitySql({ principals }: Visibility, payloadColumn: string): SqlFragment | undefined {
  if (principals === 'all') return undefined
  return {
    sql: `EXISTS (SELECT 1 FROM json_each(${payloadColumn}, '$.visible_to') v WHERE typeof(v.key) = 'integer'
      AND v.type = 'text' AND (v.value = '*' OR v.value IN (SELECT p.value FROM json_each(?) p)))`,
    parameters: [JSON.stringify(principals)],
  }
}

/** Which records a reach leaves; counted before any ranking is cut. */
export class Reaches {
  readonly #connection: Connection
  readonly #sets = new Map<string, ReadonlySet<number>>()

  constructor(connection: Connection) {
    this.#connection = connection
  }

  /** The records of a collection that a reach allows; undefined when it allows them all. Cost: a pass over all payloads. */
  allowed(collection: { id: number; version: number }, reach: Reach): ReadonlySet<number> | undefined {
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
    const set = this.#read(collection.id, [visibility, toSql(reach.filter, 'payload')])
    const [oldest] = this.#sets.keys()
    if (this.#sets.size >= SETS_MAX && oldest !== undefined) this.#sets.delete(oldest)
    if (set.size <= SET_SIZE_MAX) this.#sets.set(name, set)
    return set
  }

  #read(collection: number, conditions: readonly (SqlFragment | undefined)[]): ReadonlySet<number> {
    const given = conditions.filter(condition => condition !== undefined)
    const where = given.map(condition => `(${condition.sql})`).join(' AND ')
    const rows = this.#connection
      .prepare<{ record: number }>(`SELECT record FROM record WHERE collection = ? AND ${where}`)
      .iterate(collection, ...given.flatMap(condition => condition.parameters))
    const set = new Set<number>()
    for (const { record } of rows) set.add(record)
    return set
  }
}
