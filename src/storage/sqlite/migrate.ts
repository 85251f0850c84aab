import { closeSync, existsSync, openSync, readdirSync, readSync, renameSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { WbError } from '../../contract/errors.ts'
import type { SqliteConnection } from './connection.ts'
import { copySqliteStore } from './copy-store.ts'
import Database from './driver.ts'
import { migrations } from './migrations/index.ts'

/**
 * Number of attempts to get the write lock, which take about five minutes. Another process may be copying a large
 * store.
 */
const BEGIN_STEPS_MAX = 30_000

/**
 * Checks the schema version of a store before it is opened for writing.
 *
 * @throws control_plane_unavailable  a newer runtime wrote the store
 */
export function requireKnownSchema(path: string): void {
  // If there is no log, read the version from the file header, because opening the database would create an empty log.
  if (!existsSync(`${path}-wal`)) {
    requireKnown(versionInHeader(path), migrations.length)
    return
  }
  const database = new Database(path, { readonly: true })
  try {
    requireKnown(versionOf(database), migrations.length)
  } finally {
    database.close()
  }
}

/** @see https://www.sqlite.org/fileformat.html#user_version_number */
function versionInHeader(path: string): number {
  const header = Buffer.alloc(100)
  const file = openSync(path, 'r')
  try {
    readSync(file, header, 0, header.length, 0)
  } finally {
    closeSync(file)
  }
  return header.toString('latin1', 0, 15) === 'SQLite format 3' ? header.readUInt32BE(60) : 0
}

/**
 * Migrates the store to the schema of this runtime, in one transaction.
 *
 * If the store has an earlier schema, first copies it to `<path>.before-<new version>`, and deletes older copies.
 * Processes that open the store at the same time wait for each other.
 *
 * @throws control_plane_unavailable  a newer runtime wrote the store; nothing was changed
 */
export async function migrate(connection: SqliteConnection, path: string, steps = migrations): Promise<void> {
  if (versionOf(connection.database) === steps.length) return
  await connection.begin(BEGIN_STEPS_MAX)
  try {
    const version = versionOf(connection.database)
    requireKnown(version, steps.length)
    if (version > 0 && version < steps.length && path !== ':memory:') copyStore(path, steps.length)
    for (const step of steps.slice(version)) connection.database.exec(step)
    connection.database.pragma(`user_version = ${steps.length}`)
    connection.prepare('COMMIT').run()
  } finally {
    connection.rollback()
  }
}

function versionOf(database: Database.Database): number {
  return database.pragma('user_version', { simple: true }) as number
}

function requireKnown(version: number, known: number): void {
  if (version <= known) return
  throw new WbError(
    'control_plane_unavailable',
    `the store has schema ${version}, but this version of Workbase supports schemas up to ${known}; nothing was changed`,
    { hint: 'Use the version of Workbase that last opened this data directory, or a newer one.' },
  )
}

/**
 * Copies the committed state. The caller must hold the write lock, so that no other process can write in the meantime.
 */
function copyStore(path: string, version: number): void {
  const folder = dirname(path)
  const prefix = `${basename(path)}.before-`
  const copy = join(folder, `${basename(path)}.copy`)
  copySqliteStore(path, copy)
  for (const name of readdirSync(folder)) if (name.startsWith(prefix)) rmSync(join(folder, name))
  renameSync(copy, `${path}.before-${version}`)
}
