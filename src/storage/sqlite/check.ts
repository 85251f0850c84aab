import { existsSync } from 'node:fs'
import Database from 'better-sqlite3'
import { contentChecks } from './check-content.ts'
import { rowSearches } from './check-rows.ts'
import { type Check, lookFor } from './check-search.ts'
import { asFault } from './faults.ts'
import { migrations } from './migrations/index.ts'

export type { Check }

export interface StoreReport {
  /** Of the file; an older one is brought up to date when a runtime opens it. */
  readonly schema: number
  readonly known: number
  readonly checks: readonly Check[]
}

const problemsMax = 20

/**
 * Look through a store for damage and for rows that nothing holds any more. It is read as it stands at one moment,
 * beside whoever works with it, and is not changed.
 *
 * Of a store that is damaged, or of another schema than this runtime's, only the integrity is told.
 *
 * @returns undefined where there is no store
 * @throws control_plane_unavailable  it cannot be opened or read
 */
export function checkStore(path: string): StoreReport | undefined {
  if (!existsSync(path)) return undefined
  try {
    return report(path)
  } catch (error) {
    if (!(error instanceof Database.SqliteError)) throw error
    if (!/^SQLITE_(?:NOTADB|CORRUPT)/.test(error.code)) throw asFault(error)
    const checks = [{ check: 'damage in the file', count: 1, examples: [error.message] }]
    return { schema: 0, known: migrations.length, checks }
  }
}

function report(path: string): StoreReport {
  const database = new Database(path, { readonly: true, fileMustExist: true })
  try {
    database.exec('BEGIN')
    const schema = database.pragma('user_version', { simple: true }) as number
    const integrity = integrityOf(database)
    const isReadable = integrity.count === 0 && schema === migrations.length
    const further = isReadable
      ? [...rowSearches.map(search => lookFor(database, search)), ...contentChecks(database)]
      : []
    return { schema, known: migrations.length, checks: [integrity, ...further] }
  } finally {
    database.close()
  }
}

/** @see https://www.sqlite.org/pragma.html#pragma_integrity_check */
function integrityOf(database: Database.Database): Check {
  const rows = database.pragma(`integrity_check(${problemsMax})`) as { integrity_check: string }[]
  const problems = rows.map(row => row.integrity_check).filter(text => text !== 'ok')
  return { check: 'damage in the file', count: problems.length, examples: problems }
}
