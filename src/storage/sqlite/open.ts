import { closeSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { WbError } from '../../contract/errors.ts'
import { Connection, isBusy } from './connection.ts'
import { unwritable } from './faults.ts'
import { migrate, requireKnownSchema } from './migrate.ts'

/** Attempts at the switch to WAL, which several processes may make at once on a fresh store. */
const SWITCHES_MAX = 1_000
const SWITCH_PAUSE_MS = 10

/** A connection to a store, made and migrated where it has to be. */
export async function openConnection(path: string): Promise<Connection> {
  if (path !== ':memory:') {
    makeFile(path)
    requireKnownSchema(path)
  }
  const connection = new Connection(path)
  try {
    await makeDurable(connection)
    await migrate(connection, path)
    return connection
  } catch (error) {
    connection.close()
    throw error
  }
}

/** Readable by its owner only, like the log files that SQLite puts beside it. */
function makeFile(path: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    closeSync(openSync(path, 'a', 0o600))
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'EISDIR')
      throw new WbError(
        'control_plane_unavailable',
        'the store cannot be opened: a folder is in its place',
        { hint: 'Move the folder away, and put the file of the store back.' },
        { cause: error },
      )
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
