import { createRequire } from 'node:module'
import type BetterSqlite3 from 'better-sqlite3'

const require = createRequire(import.meta.url)

/**
 * The SQLite driver. Uses version 13 if Node can load it (Node 22.14 or later), and version 12 otherwise. Version 12
 * crashes the process on newer releases of Node 24.
 *
 * Do not import the driver in other files. Two copies of SQLite in a process would release each other's file locks.
 *
 * @see docs/decisions/0030-sqlite-driver.md
 */
const Database: typeof BetterSqlite3 =
  Number(process.versions.napi) >= 10 ? require('better-sqlite3-13') : require('better-sqlite3')

declare namespace Database {
  type Database = BetterSqlite3.Database
  type Statement<Parameters extends unknown[], Row> = BetterSqlite3.Statement<Parameters, Row>
}

export default Database
