import { defaultSpace } from '../content.ts'
import { type SpaceTables, vectorTable } from './collections.ts'
import type { SqliteConnection } from './connection.ts'

interface Passage {
  readonly title: string | null
  readonly context?: string | null
  readonly text: string | null
}

/**
 * Gives the vectors of deleted records to records that are added in the same transaction with the same title, context and text, so
 * that
 * they are not computed again. Vectors of the default space are not included: each record is added with one.
 */
export class CarriedVectors {
  readonly #connection: SqliteConnection
  /** Vectors of deleted records, by passage and then by space. */
  readonly #deleted = new Map<string, ReadonlyMap<number, Buffer>>()

  constructor(connection: SqliteConnection) {
    this.#connection = connection
  }

  /** Call this before records are deleted. */
  remember(collection: number, records: readonly number[]): void {
    const spaces = this.#listSpaces(collection)
    if (spaces.length === 0) return
    const passageOf = this.#connection.prepare<Passage>(
      'SELECT title, context, text FROM record WHERE record = ?',
    )
    const dataOf = spaces.map(space => ({
      space: space.spaceId,
      statement: this.#connection.prepare<{ data: Buffer }>(
        `SELECT data FROM ${vectorTable(space)} WHERE record = ?
          UNION ALL SELECT data FROM carried_vector WHERE record = ? AND space = ${space.spaceId}`,
      ),
    }))
    for (const record of records) {
      const vectors = new Map<number, Buffer>()
      for (const { space, statement } of dataOf) {
        const row = statement.get(record, record)
        if (row) vectors.set(space, row.data)
      }
      if (vectors.size > 0) this.#deleted.set(keyOf(collection, passageOf.get(record)!), vectors)
    }
  }

  /** Stores the vectors for a new record, if there are any. */
  carry(collection: number, record: number, passage: Passage): void {
    if (this.#deleted.size === 0) return
    const insert = this.#connection.prepare(
      'INSERT INTO carried_vector (record, space, data) VALUES (?, ?, ?)',
    )
    for (const [space, data] of this.#deleted.get(keyOf(collection, passage)) ?? [])
      insert.run(record, space, data)
  }

  /** Returns the spaces to which vectors are added record by record. */
  #listSpaces(collection: number): SpaceTables[] {
    return this.#connection
      .prepare<SpaceTables>(
        `SELECT id AS spaceId, generation, staging FROM vector_space
          WHERE collection = ? AND name <> '${defaultSpace}' AND generation > 0`,
      )
      .all(collection)
  }
}

function keyOf(collection: number, { title, context = null, text }: Passage): string {
  return JSON.stringify([collection, title, context, text])
}
