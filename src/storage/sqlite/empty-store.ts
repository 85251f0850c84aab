import { statSync } from 'node:fs'

import Database from './driver.ts'
import { fileSize, logFiles } from './log-damage.ts'
import { hadStore, readTraces } from './store-marker.ts'

/**
 * Returns true if there is no store, or if the store has no workspaces and therefore no data. Returns false for a
 * store that is lost or cannot be read. Also returns false if the store has a log, because another process may be using
 * the store, and the log has not been checked yet.
 */
export function isEmptySqliteStore(path: string): boolean {
  const traces = readTraces(path, undefined)
  if (fileSize(path) === 0) return !hadStore(traces)
  if (fileSize(logFiles(path).log) > 0) return false
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

/** Returns true if there is no store at a path, and no evidence of an earlier store. */
export function isNewSqliteStore(path: string, dataDir: string | undefined): boolean {
  return path !== ':memory:' && isMissing(path) && !hadStore(readTraces(path, dataDir))
}

/** Returns true only for ENOENT. After any other error, there may be a store at the path. */
function isMissing(path: string): boolean {
  try {
    statSync(path)
    return false
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT'
  }
}
