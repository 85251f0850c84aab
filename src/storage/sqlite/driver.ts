import { createRequire } from 'node:module'
import type BetterSqlite3 from 'better-sqlite3'

const require = createRequire(import.meta.url)

/**
 * SQLite: version 13 of the driver where Node can load it, which is from Node 22.14 on, and version 12 before. Version 12
 * ends the process on newer releases of Node 24.
 *
 * Two copies of SQLite in a process would undo each other's file locks, so nothing else imports a driver.
 *
 * @see docs/decisions/sqlite-driver.md
 */
const Database: typeof BetterSqlite3 =
  Number(process.versions.napi) >= 10 ? require('better-sqlite3-13') : require('better-sqlite3')

declare namespace Database {
  type Database = BetterSqlite3.Database
  type Statement<Parameters extends unknown[], Row> = BetterSqlite3.Statement<Parameters, Row>
}

export default Database
