import { closeSync, openSync, rmSync } from 'node:fs'
import { SqliteConnection } from './connection.ts'
import { withStoreErrors } from './faults.ts'
import { isOpenInProcess, requireIntactLog, requireSameStore, requireStoreFile } from './inspect-store.ts'
import { readTraces } from './store-marker.ts'

/**
 * Copies the committed state of a store. Other processes can use the store in the meantime.
 *
 * @param copy  path of the copy, which only this user can read; replaces an existing file
 */
export function copySqliteStore(path: string, copy: string): void {
  copyChecked(path, copy, () => {})
}

/**
 * Like {@link copySqliteStore}, for a store that this process may not have opened and checked.
 *
 * @throws control_plane_unavailable  the store is missing, has lost changes, or is another store
 */
export function copyIntactStore(path: string, dataDir: string | undefined, copy: string): Promise<void> {
  return withStoreErrors(async () => {
    const traces = readTraces(path, dataDir)
    requireStoreFile(path, traces)
    if (!isOpenInProcess(path)) requireIntactLog(path)
    copyChecked(path, copy, ({ database }) => requireSameStore(database, path, traces))
  })
}

function copyChecked(path: string, copy: string, check: (reader: SqliteConnection) => void): void {
  rmSync(copy, { force: true })
  // Create an empty file, into which SQLite writes. Other users could read a file that SQLite creates.
  closeSync(openSync(copy, 'w', 0o600))
  const reader = new SqliteConnection(path)
  try {
    check(reader)
    reader.prepare('VACUUM INTO ?').run(copy)
  } finally {
    reader.close()
  }
}
