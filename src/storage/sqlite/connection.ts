import Database from './driver.ts'
import { defineFilterFunctions } from './filter-sql.ts'

/** Timeout of a statement that waits for a lock. `begin` waits in shorter steps, so as not to block the thread. */
const BUSY_TIMEOUT_MS = 5_000
const BEGIN_STEP_MS = 10
const BEGIN_STEPS_MAX = 1_000
/** Size in bytes to which the write-ahead log is truncated when it is reset. */
const LOG_SIZE_MAX = 64 * 1024 * 1024
const STATEMENTS_MAX = 256

export type SqliteStatement<Row> = Database.Statement<unknown[], Row>

/** A connection to a store for use by one thread. Caches prepared statements; transactions are explicit. */
export class SqliteConnection {
  readonly database: Database.Database
  readonly #statements = new Map<string, SqliteStatement<unknown>>()

  /** @param source  file, `:memory:`, or an open database, whose settings stay unchanged */
  constructor(source: string | Database.Database) {
    if (typeof source !== 'string') {
      this.database = source
      return
    }
    this.database = new Database(source, { timeout: BUSY_TIMEOUT_MS })
    defineFilterFunctions(this.database)
    this.database.pragma('foreign_keys = OFF')
    this.database.pragma('trusted_schema = OFF')
    this.database.pragma('temp_store = MEMORY')
  }

  /**
   * Makes every commit durable before it is acknowledged.
   *
   * FULL is set after WAL, because the driver is compiled to fall back to NORMAL when it switches to WAL.
   *
   * @throws SqliteError  SQLITE_BUSY while another process switches the store to WAL
   */
  makeDurable(): void {
    this.database.pragma('journal_mode = WAL')
    this.database.pragma('synchronous = FULL')
    this.database.pragma(`journal_size_limit = ${LOG_SIZE_MAX}`)
  }

  /** Rejects every write from now on. */
  makeReadOnly(): void {
    this.database.pragma('query_only = ON')
  }

  /** Prepares an SQL statement, or returns it from the cache. The caller must state the correct row type. */
  prepare<Row = unknown>(sql: string): SqliteStatement<Row> {
    let statement = this.#statements.get(sql)
    this.#statements.delete(sql)
    if (!statement) {
      statement = this.database.prepare<unknown[], unknown>(sql)
      const [oldest] = this.#statements.keys()
      if (this.#statements.size >= STATEMENTS_MAX && oldest !== undefined) this.#statements.delete(oldest)
    }
    this.#statements.set(sql, statement)
    return statement as SqliteStatement<Row>
  }

  /** Runs reads that must see the same state of the store. */
  snapshot<T>(read: () => T): T {
    this.prepare('BEGIN').run()
    try {
      return read()
    } finally {
      // Some failures, such as disk errors, end the transaction by themselves.
      if (this.database.inTransaction) this.prepare('COMMIT').run()
    }
  }

  /**
   * Begins a transaction with the write lock. SQLite has no queue for the lock, so short, frequent attempts
   * keep the waiting fair.
   *
   * @throws SqliteError  SQLITE_BUSY after about 10 seconds
   */
  async begin(stepsMax = BEGIN_STEPS_MAX): Promise<void> {
    this.database.pragma(`busy_timeout = ${BEGIN_STEP_MS}`)
    try {
      for (let step = 1; !this.#tryBegin(step === stepsMax); step++) await new Promise(setImmediate)
    } finally {
      this.database.pragma(`busy_timeout = ${BUSY_TIMEOUT_MS}`)
    }
  }

  #tryBegin(isLast: boolean): boolean {
    try {
      this.prepare('BEGIN IMMEDIATE').run()
      return true
    } catch (error) {
      if (isLast || !isBusy(error)) throw error
      return false
    }
  }

  rollback(): void {
    if (this.database.inTransaction) this.prepare('ROLLBACK').run()
  }

  /**
   * Copies the log into the database file, then truncates the log to free disk space.
   *
   * @returns false if another connection reads from the log, or the database file would have to grow
   */
  truncateLog(): boolean {
    this.database.pragma(`busy_timeout = ${BEGIN_STEP_MS}`)
    try {
      const [result] = this.database.pragma('wal_checkpoint(TRUNCATE)') as { busy: number }[]
      return result?.busy === 0
    } catch {
      return false
    } finally {
      this.database.pragma(`busy_timeout = ${BUSY_TIMEOUT_MS}`)
    }
  }

  close(): void {
    this.#statements.clear()
    this.database.close()
  }
}

/** Returns true if the lock of another connection caused the error. */
export function isBusy(error: unknown): boolean {
  return error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY')
}
