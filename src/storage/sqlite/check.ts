import { existsSync } from 'node:fs'
import { WbError } from '../../contract/errors.ts'
import type { StoreReport } from '../storage-driver.ts'
import { contentChecks } from './check-content.ts'
import { checkIntegrity, checkRows, checkSchema } from './check-damage.ts'
import { rowProblemQueries } from './check-rows.ts'
import Database from './driver.ts'
import { convertStoreError } from './faults.ts'
import { isOpenInProcess, requireIntactLog, requireSameStore, requireStoreFile } from './inspect-store.ts'
import { migrations } from './migrations/index.ts'
import { runProblemQuery } from './problem-query.ts'
import { readTraces, type StoreTraces } from './store-marker.ts'

/**
 * Checks a store, see `StorageDriver.check`.
 *
 * If the structure of the file is damaged, does not check for orphaned rows. If the schema version of the file is not
 * that of this runtime, checks only the structure.
 */
export function checkSqliteStore(path: string, dataDir?: string): StoreReport | undefined {
  const traces = readTraces(path, dataDir)
  requireStoreFile(path, traces)
  if (!existsSync(path)) return undefined
  if (!isOpenInProcess(path)) requireIntactLog(path)
  try {
    return createReport(path, traces)
  } catch (error) {
    if (!(error instanceof Database.SqliteError)) throw error
    const fault = convertStoreError(error)
    const isDamage = /^SQLITE_(?:NOTADB|CORRUPT|ERROR)/.test(error.code)
    if (fault instanceof WbError && !isDamage) throw fault
    const checks = [{ check: 'damage in the file', count: 1, examples: [error.message] }]
    return { schema: 0, known: migrations.length, checks }
  }
}

function createReport(path: string, traces: StoreTraces): StoreReport {
  const database = new Database(path, { readonly: true, fileMustExist: true })
  try {
    requireSameStore(database, path, traces)
    database.exec('BEGIN')
    const known = migrations.length
    const schema = database.pragma('user_version', { simple: true }) as number
    const integrity = checkIntegrity(database)
    if (schema !== known) return { schema, known, checks: [integrity] }
    const { checks, readable } = checkRows(database)
    const structure = [integrity, checkSchema(database)]
    const damage = [...structure, ...checks]
    const isDamaged = damage.some(({ count }) => count > 0)
    if (structure.some(({ count }) => count > 0)) return { schema, known, checks: damage, readable }
    const contentResults = [
      ...rowProblemQueries.map(query => runProblemQuery(database, query)),
      ...contentChecks(database),
    ]
    return { schema, known, checks: [...damage, ...contentResults], ...(isDamaged && { readable }) }
  } finally {
    database.close()
  }
}
