import { closeSync, openSync, rmSync } from 'node:fs'
import { SqliteConnection } from './connection.ts'

/**
 * Copies the committed state of a store. Other processes can use the store in the meantime.
 *
 * @param copy  path of the copy, which only this user can read; replaces an existing file
 */
export function copySqliteStore(path: string, copy: string): void {
  rmSync(copy, { force: true })
  // Create an empty file, into which SQLite writes. Other users could read a file that SQLite creates.
  closeSync(openSync(copy, 'w', 0o600))
  const reader = new SqliteConnection(path)
  try {
    reader.prepare('VACUUM INTO ?').run(copy)
  } finally {
    reader.close()
  }
}
