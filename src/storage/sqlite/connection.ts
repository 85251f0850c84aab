import Database from './driver.ts'
import { defineFilterFunctions } from './filter-sql.ts'

/** Wait of a statement for a lock; `begin` waits in shorter steps, so that the thread stays free. */
const BUSY_TIMEOUT_MS = 5_000
const BEGIN_STEP_MS = 10
const BEGIN_STEPS_MAX = 1_000
/** The write-ahead log is cut back to this when it is reset. */
const LOG_SIZE_MAX = 64 * 1024 * 1024
const STATEMENTS_MAX = 256

/** A statement whose rows are of one type. */
export type Statement<Row> = Database.Statement<unknown[], Row>

/** One connection to the store: prepared statements kept, transactions spelled out. Serves one thread. */
export class Connection {
  readonly database: Database.Database
  readonly #statements = new Map<string, Statement<unknown>>()

  /** @param path  file, or `:memory:` */
  constructor(path: string) {
    this.database = new Database(path, { timeout: BUSY_TIMEOUT_MS })
    defineFilterFunctions(this.database)
    this.database.pragma('foreign_keys = OFF')
    this.database.pragma('trusted_schema = OFF')
    this.database.pragma('temp_store = MEMORY')
  }

  /**
   * Make every commit durable before it is acknowledged.
   *
   * FULL is set after WAL: the driver is compiled so that a switch to WAL falls back to NORMAL.
   *
   * @throws SqliteError SQLITE_BUSY while another process makes the same switch
   */
  makeDurable(): void {
    this.database.pragma('journal_mode = WAL')
    this.database.pragma('synchronous = FULL')
    this.database.pragma(`journal_size_limit = ${LOG_SIZE_MAX}`)
  }

  /** Refuse every write from now on. */
  makeReadOnly(): void {
    this.database.pragma('query_only = ON')
  }

  /** The statement of an SQL text, compiled once. The type of its rows is the caller's word. */
  prepare<Row = unknown>(sql: string): Statement<Row> {
    let statement = this.#statements.get(sql)
    this.#statements.delete(sql)
    if (!statement) {
      statement = this.database.prepare<unknown[], unknown>(sql)
      const [oldest] = this.#statements.keys()
      if (this.#statements.size >= STATEMENTS_MAX && oldest !== undefined) this.#statements.delete(oldest)
    }
    this.#statements.set(sql, statement)
    return statement as Statement<Row>
  }

  /** Run reads that must see one state of the store. */
  snapshot<T>(read: () => T): T {
    this.prepare('BEGIN').run()
    try {
      return read()
    } finally {
      // Some failures, such as those of the disk, end the transaction by themselves.
      if (this.database.inTransaction) this.prepare('COMMIT').run()
    }
  }

  /**
   * Take the write lock, which processes hand round without a queue: asking often keeps the wait fair.
   *
   * @throws SqliteError SQLITE_BUSY after about 10 seconds
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
   * Copies the log into the database, and gives its space back to the disk.
   *
   * @returns false if another connection reads from the log, or the database would have to grow
   */
  cutLog(): boolean {
    this.database.pragma(`busy_timeout = ${BEGIN_STEP_MS}`)
    try {
      const [done] = this.database.pragma('wal_checkpoint(TRUNCATE)') as { busy: number }[]
      return done?.busy === 0
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

/** Whether another connection was in the way. */
export function isBusy(error: unknown): boolean {
  return error instanceof Database.SqliteError && error.code.startsWith('SQLITE_BUSY')
}
