import Database from './driver.ts'

/**
 * Timeout of a statement that waits for a lock. `begin` waits in shorter steps, so that it does not block the thread.
 */
const BUSY_TIMEOUT_MS = 5_000
const BEGIN_STEP_MS = 10
const BEGIN_STEPS_MAX = 1_000
/** Maximum size in bytes of the write-ahead log file after SQLite has reset the log. */
const LOG_SIZE_MAX = 64 * 1024 * 1024
const STATEMENTS_MAX = 256

export type SqliteStatement<Row> = Database.Statement<unknown[], Row>

/** A connection to a store for one thread. Caches prepared statements. The caller must start transactions. */
export class SqliteConnection {
  readonly database: Database.Database
  readonly #statements = new Map<string, SqliteStatement<unknown>>()

  /** @param source  path of the database file, `:memory:`, or an open database, whose settings stay unchanged */
  constructor(source: string | Database.Database) {
    if (typeof source !== 'string') {
      this.database = source
      return
    }
    this.database = new Database(source, { timeout: BUSY_TIMEOUT_MS })
    this.database.pragma('foreign_keys = OFF')
    this.database.pragma('trusted_schema = OFF')
    this.database.pragma('temp_store = MEMORY')
  }

  /**
   * From now on, makes every commit durable before it returns. A new store will be able to give free space back.
   *
   * Sets `synchronous` after `journal_mode`, because the driver is compiled to reset it to NORMAL when it switches to
   * WAL.
   *
   * @throws SqliteError  SQLITE_BUSY while another process switches the store to WAL
   */
  makeDurable(): void {
    // Takes effect only in a new store, before SQLite writes its first page.
    this.database.pragma('auto_vacuum = INCREMENTAL')
    this.database.pragma('journal_mode = WAL')
    this.database.pragma('synchronous = FULL')
    this.database.pragma(`journal_size_limit = ${LOG_SIZE_MAX}`)
  }

  /** From now on, rejects every write. */
  makeReadOnly(): void {
    this.database.pragma('query_only = ON')
  }

  /** Prepares an SQL statement, or returns it from the cache. The caller must specify the correct row type. */
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
      // Some failures, such as disk errors, have already ended the transaction.
      if (this.database.inTransaction) this.prepare('COMMIT').run()
    }
  }

  /**
   * Starts a transaction with the write lock. Uses short, frequent attempts, because SQLite has no queue for the lock,
   * and each waiting process must get a fair chance.
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
    const timeout = this.database.pragma('busy_timeout', { simple: true })
    this.database.pragma(`busy_timeout = ${BEGIN_STEP_MS}`)
    try {
      const [result] = this.database.pragma('wal_checkpoint(TRUNCATE)') as { busy: number }[]
      return result?.busy === 0
    } catch {
      return false
    } finally {
      this.database.pragma(`busy_timeout = ${timeout}`)
    }
  }

  close(): void {
    this.#statements.clear()
    this.database.close()
  }
}

/** Returns true if an error occurred because another connection has a lock. */
export function isBusy(error: unknown): boolean {
  return error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY')
}
