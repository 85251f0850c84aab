import type { Filter } from '../../src/storage/filter.ts'
import { AllowedRecords } from '../../src/storage/sqlite/allowed-records.ts'
import { SqliteConnection } from '../../src/storage/sqlite/connection.ts'
import { migrations } from '../../src/storage/sqlite/migrations/index.ts'
import type { Visibility } from '../../src/storage/visibility.ts'
import { all } from './content-data.ts'

/** The store of all tables, because creating a store takes longer than most tests. */
const connection = new SqliteConnection(':memory:')
for (const migration of migrations) connection.database.exec(migration)
let collections = 0

/** A collection of payloads in an SQLite store in memory. */
export class PayloadTable {
  readonly allowedRecords: AllowedRecords
  readonly #collection = ++collections
  #version = 0
  #records = 0

  /** @param columnBytesMax  memory limit of the payload columns */
  constructor(columnBytesMax?: number) {
    this.allowedRecords = new AllowedRecords(connection, columnBytesMax)
  }

  /** Stores a payload, and returns the number of its record. */
  add(payload: object): number {
    this.#version++
    this.#records++
    const { lastInsertRowid } = connection
      .prepare('INSERT INTO record (collection, id, payload) VALUES (?, ?, ?)')
      .run(this.#collection, String(this.#version), JSON.stringify(payload))
    return Number(lastInsertRowid)
  }

  remove(record: number): void {
    this.#version++
    this.#records--
    connection.prepare('DELETE FROM record WHERE record = ?').run(record)
    connection
      .prepare('INSERT INTO record_gone (collection, record) VALUES (?, ?)')
      .run(this.#collection, record)
  }

  /** Deletes the log of deletions, which a store trims. */
  trimLog(): void {
    connection.prepare('DELETE FROM record_gone WHERE collection = ?').run(this.#collection)
  }

  /** Returns the records that are visible and match a filter; undefined if all are allowed. */
  matching(filter: Filter | undefined, visibility: Visibility = all): number[] | undefined {
    const found = this.allowedRecords.allowed(
      { id: this.#collection, version: this.#version, records: this.#records },
      { visibility, ...(filter && { filter }) },
    )
    return found && [...found]
  }
}
