import { closeSync, existsSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { createFolder } from '../../base/folder.ts'
import { unwritableFolder } from '../unwritable-folder.ts'
import { isBusy, SqliteConnection } from './connection.ts'
import { isOpenInProcess, requireIntactLog, requireSameStore, requireStoreFile } from './inspect-store.ts'
import { migrate, requireKnownSchema } from './migrate.ts'
import { markStore, readTraces, type StoreTraces } from './store-marker.ts'

/** Maximum number of attempts to switch to WAL. Several processes may try to switch a new store at the same time. */
const SWITCHES_MAX = 1_000
const SWITCH_PAUSE_MS = 10

export interface ConnectionOptions {
  /** Data directory of the runtime. For a store outside the data directory, it contains a second marker. */
  readonly dataDir?: string | undefined
  /** True if another thread of this process has the store open, and has checked its files. */
  readonly isOpenElsewhere?: boolean | undefined
}

/**
 * Opens a connection to a store, and creates or migrates the store if necessary.
 *
 * @throws control_plane_unavailable  the store is missing or damaged, or was not created by Workbase
 */
export async function openConnection(
  path: string,
  options: ConnectionOptions = {},
): Promise<SqliteConnection> {
  if (path === ':memory:') return prepareConnection(new SqliteConnection(path), path)
  const traces = readTraces(path, options.dataDir)
  requireStoreFile(path, traces)
  createStoreFile(path)
  if (!options.isOpenElsewhere && !isOpenInProcess(path)) {
    requireIntactLog(path)
    requireKnownSchema(path)
  }
  return prepareConnection(new SqliteConnection(path), path, traces)
}

async function prepareConnection(
  connection: SqliteConnection,
  path: string,
  traces?: StoreTraces,
): Promise<SqliteConnection> {
  try {
    if (traces) requireSameStore(connection.database, path, traces)
    await makeDurable(connection)
    await migrate(connection, path)
    if (traces) await markStore(connection, path, traces)
    return connection
  } catch (error) {
    connection.close()
    throw error
  }
}

/** Creates a file that only its owner can read. SQLite creates the log files with the same mode. */
function createStoreFile(path: string): void {
  try {
    createFolder(dirname(path))
    if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
  } catch (error) {
    throw unwritableFolder(error)
  }
}

async function makeDurable(connection: SqliteConnection): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return connection.makeDurable()
    } catch (error) {
      if (!isBusy(error) || attempt === SWITCHES_MAX) throw error
      await new Promise(resolve => setTimeout(resolve, SWITCH_PAUSE_MS))
    }
  }
}
