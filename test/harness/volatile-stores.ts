import { onTestFinished } from 'vitest'
import { SqliteConnection } from '../../src/storage/sqlite/connection.ts'

const { makeDurable } = SqliteConnection.prototype

/*
 * Stores in the processes of the tests do not wait for the disk, which would take a tenth of the time of all tests. A
 * store survives the end of its process anyway. Tests of durability run other processes, which wait for the disk.
 */
SqliteConnection.prototype.makeDurable = makeVolatile

function makeVolatile(this: SqliteConnection): void {
  makeDurable.call(this)
  this.database.pragma('synchronous = OFF')
}

/** Makes the stores that the current test opens wait for the disk, as they do in production. */
export function waitForDisk(): void {
  SqliteConnection.prototype.makeDurable = makeDurable
  onTestFinished(() => {
    SqliteConnection.prototype.makeDurable = makeVolatile
  })
}
