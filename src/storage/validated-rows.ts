import { LRUCache } from 'lru-cache'
import { damagedStore } from './damaged-store.ts'
import { rowSchemas } from './row-schemas.ts'
import type { AnyTable, RowStore, Stored } from './rows.ts'
import { tables } from './tables.ts'

const schemas = new Map(
  Object.entries(tables).map(([key, { name }]) => [name, rowSchemas[key as keyof typeof tables]]),
)

/** Length of one remembered row text, and of all of them, in UTF-16 units. */
const validCharsMax = { row: 16_384, all: 2_000_000 }

/** Texts of rows that fit the schema of a table. */
type ValidTexts = LRUCache<string, AnyTable>

/**
 * Wraps a row store to check each row that is read against the schema of its table. A row that does not fit
 * was changed on disk, and is reported as damage. A text that was valid is not checked again, because a chat
 * reads the same agent, workspace and services in each turn.
 */
export function withValidatedRows(rows: RowStore): RowStore {
  const valid: ValidTexts = new LRUCache({
    maxSize: validCharsMax.all,
    maxEntrySize: validCharsMax.row,
    sizeCalculation: (_table, text) => text.length + 1,
  })
  return {
    ...rows,
    async get(table, key) {
      const stored = await rows.get(table, key)
      return stored && requireValid(table, stored, valid)
    },
    async list(table, query) {
      const found = await rows.list(table, query)
      for (const stored of found) requireValid(table, stored, valid)
      return found
    },
  }
}

/** @throws control_plane_unavailable  the row is damaged */
function requireValid<S extends Stored<object>>(table: AnyTable, stored: S, valid: ValidTexts): S {
  if (valid.get(stored.text) === table) return stored
  const problem = rowProblem(table, stored.row)
  if (problem === undefined) {
    valid.set(stored.text, table)
    return stored
  }
  throw damagedStore(`row ${stored.ordinal} of ${table.name}`, new Error(problem))
}

/** Returns the first field that does not fit, and the reason; undefined for a valid row. */
export function rowProblem({ name }: AnyTable, row: unknown): string | undefined {
  const result = schemas.get(name)?.safeParse(row)
  if (!result || result.success) return undefined
  const { path, message } = result.error.issues[0]!
  return `${path.map(String).join('.') || 'the row'}: ${message}`
}
