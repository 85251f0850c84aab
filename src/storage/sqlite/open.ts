import { closeSync, existsSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { createFolder } from '../../base/folder.ts'
import { Connection, isBusy } from './connection.ts'
import { unwritable } from './faults.ts'
import { isOpenHere, requireIntactLog, requireSameStore, requireStoreFile } from './inspect.ts'
import { markStore, readTraces, type Traces } from './marker.ts'
import { migrate, requireKnownSchema } from './migrate.ts'

/** Attempts at the switch to WAL, which several processes may make at once on a fresh store. */
const SWITCHES_MAX = 1_000
const SWITCH_PAUSE_MS = 10

export interface ConnectionOptions {
  /** Data directory of the runtime, which keeps a second marker of a store outside of it. */
  readonly dataDir?: string | undefined
  /** Another thread of this process has the store open, and has checked its files. */
  readonly isOpenElsewhere?: boolean | undefined
}

/**
 * Opens a connection to a store, and creates or migrates the store if necessary.
 *
 * @throws control_plane_unavailable  the store is gone or damaged, or was not made by this runtime
 */
export async function openConnection(path: string, options: ConnectionOptions = {}): Promise<Connection> {
  if (path === ':memory:') return prepared(new Connection(path), path)
  const traces = readTraces(path, options.dataDir)
  requireStoreFile(path, traces)
  makeFile(path)
  if (!options.isOpenElsewhere && !isOpenHere(path)) {
    requireIntactLog(path)
    requireKnownSchema(path)
  }
  return prepared(new Connection(path), path, traces)
}

async function prepared(connection: Connection, path: string, traces?: Traces): Promise<Connection> {
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

/** Readable by its owner only, like the log files that SQLite puts beside it. */
function makeFile(path: string): void {
  try {
    createFolder(dirname(path))
    if (!existsSync(path)) closeSync(openSync(path, 'a', 0o600))
  } catch (error) {
    throw unwritable(error)
  }
}

async function makeDurable(connection: Connection): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      return connection.makeDurable()
    } catch (error) {
      if (!isBusy(error) || attempt === SWITCHES_MAX) throw error
      await new Promise(resolve => setTimeout(resolve, SWITCH_PAUSE_MS))
    }
  }
}
