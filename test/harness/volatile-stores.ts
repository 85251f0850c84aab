import { statSync, writeFileSync } from 'node:fs'
import { onTestFinished } from 'vitest'
import { SqliteConnection } from '../../src/storage/sqlite/connection.ts'
import Database from '../../src/storage/sqlite/driver.ts'
import { migrations } from '../../src/storage/sqlite/migrations/index.ts'

const { makeDurable } = SqliteConnection.prototype

/*
 * Stores in the processes of the tests do not wait for the disk, which would take a tenth of the time of all tests. A
 * store survives the end of its process anyway. Tests of durability run other processes, which wait for the disk.
 */
SqliteConnection.prototype.makeDurable = makeVolatile

function makeVolatile(this: SqliteConnection): void {
  if (this.database.memory) useMigratedMemory(this)
  else writeMigratedFile(this)
  // Switching to WAL waits for the disk, and resets the setting.
  this.database.pragma('synchronous = OFF')
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

let migratedStore: Buffer | undefined

/** Fills the file of a new store with a migrated one, which takes a tenth of the time of the migrations. */
function writeMigratedFile({ database }: SqliteConnection): void {
  migratedStore ??= migrateStore()
  if (statSync(database.name).size === 0) writeFileSync(database.name, migratedStore)
}

/**
 * Replaces a new database in memory by a copy of a migrated one: the migrations take a hundred times as long. Tests of
 * migrations do not make their databases in memory durable, so they start without a schema.
 */
function useMigratedMemory(connection: SqliteConnection): void {
  migratedStore ??= migrateStore()
  const { database } = connection
  const copy = new Database(migratedStore)
  for (const setting of ['foreign_keys', 'trusted_schema', 'temp_store'])
    copy.pragma(`${setting} = ${database.pragma(setting, { simple: true })}`)
  database.close()
  Object.assign(connection, { database: copy })
}

function migrateStore(): Buffer {
  const database = new Database(':memory:')
  database.pragma('auto_vacuum = INCREMENTAL')
  for (const step of migrations) database.exec(step)
  database.pragma(`user_version = ${migrations.length}`)
  const contents = database.serialize()
  database.close()
  return contents
}
