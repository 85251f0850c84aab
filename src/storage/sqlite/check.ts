import { existsSync } from 'node:fs'
import { WbError } from '../../contract/errors.ts'
import { contentChecks } from './check-content.ts'
import { checkIntegrity, checkRows, checkSchema, type ReadableTable } from './check-damage.ts'
import { rowProblemQueries } from './check-rows.ts'
import Database from './driver.ts'
import { convertStoreError } from './faults.ts'
import { isOpenInProcess, requireIntactLog, requireSameStore, requireStoreFile } from './inspect-store.ts'
import { migrations } from './migrations/index.ts'
import { runProblemQuery, type StoreCheck } from './problem-query.ts'
import { readTraces, type StoreTraces } from './store-marker.ts'

export type { ReadableTable, StoreCheck }

export interface StoreReport {
  /** Schema version of the file. A runtime migrates an older version when it opens the store. */
  readonly schema: number
  /** Schema version of this runtime. */
  readonly known: number
  readonly checks: readonly StoreCheck[]
  /** Numbers of rows that can be recovered; absent if the store is not damaged, or was not read row by row. */
  readonly readable?: readonly ReadableTable[]
}

/**
 * Checks a store for damage and for orphaned rows. Reads one snapshot, and does not change the store. Other processes
 * can use the store in the meantime.
 *
 * If the structure of the file is damaged, does not check for orphaned rows. If the schema version of the file is not
 * that of this runtime, checks only the structure.
 *
 * @returns undefined if there is no store
 * @throws control_plane_unavailable  the store is missing, has lost changes, or cannot be opened
 */
export function checkStore(path: string, dataDir?: string): StoreReport | undefined {
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
