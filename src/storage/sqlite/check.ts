import { existsSync } from 'node:fs'
import { WbError } from '../../contract/errors.ts'
import { contentChecks } from './check-content.ts'
import { integrityOf, type Readable, rowDamage, schemaDamage } from './check-damage.ts'
import { rowSearches } from './check-rows.ts'
import { type Check, lookFor } from './check-search.ts'
import Database from './driver.ts'
import { asFault } from './faults.ts'
import { isOpenHere, requireIntactLog, requireSameStore, requireStoreFile } from './inspect.ts'
import { readTraces, type Traces } from './marker.ts'
import { migrations } from './migrations/index.ts'

export type { Check, Readable }

export interface StoreReport {
  /** Schema version of the file. An older one is migrated when a runtime opens the store. */
  readonly schema: number
  readonly known: number
  readonly checks: readonly Check[]
  /** Rows that can be recovered; absent if the store is not damaged. */
  readonly readable?: readonly Readable[]
}

/**
 * Checks a store for damage and for orphaned rows. Reads one snapshot and changes nothing; other processes
 * can go on.
 *
 * Checks only for damage if the file is damaged, or has another schema version than this runtime.
 *
 * @returns undefined if there is no store
 * @throws control_plane_unavailable  the store is gone, has lost changes, or cannot be opened
 */
export function checkStore(path: string, dataDir?: string): StoreReport | undefined {
  const traces = readTraces(path, dataDir)
  requireStoreFile(path, traces)
  if (!existsSync(path)) return undefined
  if (!isOpenHere(path)) requireIntactLog(path)
  try {
    return report(path, traces)
  } catch (error) {
    if (!(error instanceof Database.SqliteError)) throw error
    const fault = asFault(error)
    const isDamage = /^SQLITE_(?:NOTADB|CORRUPT|ERROR)/.test(error.code)
    if (fault instanceof WbError && !isDamage) throw fault
    const checks = [{ check: 'damage in the file', count: 1, examples: [error.message] }]
    return { schema: 0, known: migrations.length, checks }
  }
}

function report(path: string, traces: Traces): StoreReport {
  const database = new Database(path, { readonly: true, fileMustExist: true })
  try {
    requireSameStore(database, path, traces)
    database.exec('BEGIN')
    const known = migrations.length
    const schema = database.pragma('user_version', { simple: true }) as number
    const integrity = integrityOf(database)
    if (schema !== known) return { schema, known, checks: [integrity] }
    const { checks, readable } = rowDamage(database)
    const structure = [integrity, schemaDamage(database)]
    const damage = [...structure, ...checks]
    const isDamaged = damage.some(({ count }) => count > 0)
    if (structure.some(({ count }) => count > 0)) return { schema, known, checks: damage, readable }
    const further = [...rowSearches.map(search => lookFor(database, search)), ...contentChecks(database)]
    return { schema, known, checks: [...damage, ...further], ...(isDamaged && { readable }) }
  } finally {
    database.close()
  }
}
