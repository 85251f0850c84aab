import { damagedStore } from './damaged-store.ts'
import { rowSchemas } from './row-schemas.ts'
import type { AnyTable, RowStore, Stored } from './rows.ts'
import { tables } from './tables.ts'

const schemas = new Map(
  Object.entries(tables).map(([key, { name }]) => [name, rowSchemas[key as keyof typeof tables]]),
)

/**
 * Wraps a row store to check each row that is read against the schema of its table. A row that does not fit
 * was changed on disk, and is reported as damage.
 */
export function withValidatedRows(rows: RowStore): RowStore {
  return {
    ...rows,
    async get(table, key) {
      const stored = await rows.get(table, key)
      return stored && requireValid(table, stored)
    },
    async list(table, query) {
      const found = await rows.list(table, query)
      for (const stored of found) requireValid(table, stored)
      return found
    },
  }
}

/** @throws control_plane_unavailable  the row is damaged */
function requireValid<S extends Stored<object>>(table: AnyTable, stored: S): S {
  const problem = rowProblem(table, stored.row)
  if (problem === undefined) return stored
  throw damagedStore(`row ${stored.ordinal} of ${table.name}`, new Error(problem))
}

/** Returns the first field that does not fit, and the reason; undefined for a valid row. */
export function rowProblem({ name }: AnyTable, row: unknown): string | undefined {
  const result = schemas.get(name)?.safeParse(row)
  if (!result || result.success) return undefined
  const { path, message } = result.error.issues[0]!
  return `${path.map(String).join('.') || 'the row'}: ${message}`
}
