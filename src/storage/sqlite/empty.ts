import { existsSync } from 'node:fs'
import Database from 'better-sqlite3'

/** Whether a store has no workspace, and so nothing at all; one that cannot be read counts as one that has. */
export function holdsNothing(path: string): boolean {
  if (!existsSync(path)) return true
  try {
    const database = new Database(path, { readonly: true, fileMustExist: true })
    try {
      return database.prepare('SELECT 1 FROM workspaces LIMIT 1').get() === undefined
    } finally {
      database.close()
    }
  } catch {
    return false
  }
}
